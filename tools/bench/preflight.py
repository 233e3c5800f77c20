"""Preflight over eight regions with 100 ms added to every call, against the longest chain of calls.

What the embedded AWS answers is recorded once and played again, so that the time is that of `trn` alone.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from threading import Lock
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from tools.bench.result import Result
from tools.bench.timing import seconds
from tools.demo.private_aws import PrivateAws
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.plan import Plan
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.preflight.regions import preflight_in_regions
from trainium_core.preflight.runner import CHECKS, preflight
from trainium_runtime.aws_service import Clients

DELAY_SECONDS = 0.1
REGIONS = 8
RUNS = 5
_WITH_A_TIME = (".GetMetricStatistics", ".DescribeSpotPriceHistory")


def preflight_over_regions(aws: PrivateAws) -> Iterator[Result]:
    """All questions at once, against those that must wait for each other."""
    plan = _plan_for_every_region(aws.region)
    regions = plan.catalog.regions[:REGIONS]
    recorder = _Recorder()
    _run_preflight(plan, regions, Clients(recorder.session()))
    recorder.replaying = True
    clients = Clients(recorder.session())
    chain = _longest_chain(plan, recorder, clients)
    _run_preflight(plan, regions, clients)  # makes the clients
    recorder.calls.clear()
    _run_preflight(plan, regions, clients)
    calls = len(recorder.calls)
    took = median(seconds(lambda: _run_preflight(plan, regions, clients)) for _ in range(RUNS))
    cold = median(seconds(lambda: _run_preflight(plan, regions, Clients(recorder.session()))) for _ in range(RUNS))
    least = len(chain) * DELAY_SECONDS
    yield Result(
        name=f"preflight of {len(regions)} regions / the longest chain of calls that wait for each other",
        value=took / least,
        aim=1.3,
        found=f"{took:.2f} s / {least:.2f} s ({', '.join(chain)}); {cold:.2f} s with the making of boto3's clients",
        method=f"medians of {RUNS} runs of {calls} calls, recorded, each answered {DELAY_SECONDS * 1000:.0f} ms later",
    )


@dataclass(frozen=True)
class _Call:
    operation: str
    start: float
    end: float


@dataclass
class _Recorder:
    """Stands between the clients and the network: passes on and keeps, later plays again with a delay."""

    answers: dict[tuple[str, ...], Any] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    replaying: bool = False
    _http: URLLib3Session = field(default_factory=lambda: URLLib3Session(max_pool_connections=64))
    _lock: Lock = field(default_factory=Lock)

    def session(self) -> boto3.Session:
        session = boto3.Session()
        session.events.register("before-send.*", self)
        return session

    def __call__(self, request: AWSPreparedRequest, event_name: str, **_: Any) -> Any:
        start, key = time.perf_counter(), _key(event_name, request)
        if not self.replaying:
            answer = self._http.send(request)
            _ = answer.content  # read while the connection is open
            self.answers[key] = answer
            return answer
        time.sleep(DELAY_SECONDS)
        with self._lock:
            self.calls.append(_Call(event_name.rsplit(".", 1)[-1], start, time.perf_counter()))
        if key not in self.answers:
            raise RuntimeError(f"never recorded: {key}")  # a LookupError would pass for an answer that lacks something
        return self.answers[key]


def _run_preflight(plan: Plan, regions: Sequence[str], clients: Clients) -> None:
    preflight_in_regions(plan, regions, lambda region: AwsAccount(region, clients=clients))


def _longest_chain(plan: Plan, recorder: _Recorder, clients: Clients) -> tuple[str, ...]:
    """Each check asked alone: how many of its calls are made one after the other, the longest such run."""
    chains: list[tuple[str, ...]] = []
    for check in CHECKS:
        recorder.calls.clear()
        preflight(plan, AwsAccount(plan.region, clients=clients), suppressed=CHECKS.keys() - {check})
        chains.append(_one_after_the_other(recorder.calls))
    return max(chains, key=len)


def _one_after_the_other(calls: Sequence[_Call]) -> tuple[str, ...]:
    chain: list[_Call] = []
    for call in sorted(calls, key=lambda call: call.end):
        if not chain or call.start >= chain[-1].end:
            chain.append(call)
    return tuple(call.operation for call in chain)


def _plan_for_every_region(region: str) -> Plan:
    """No type is sold in eight regions, so this one pretends to be: what is asked does not depend on it."""
    known = builtin_catalog()
    zones = {region: zones for entry in known.values() for region, zones in entry.zones.items()}
    everywhere = replace(known["trn1.32xlarge"], zones=zones)
    return Plan(
        instance_type=everywhere.name,
        region=region,
        nodes=2,
        catalog=Catalog([everywhere], known.facts, known.sources),
    )


def _key(event_name: str, request: AWSPreparedRequest) -> tuple[str, ...]:
    """The key of a request. All regions have one endpoint here: theirs stands in the signature alone."""
    region = str(request.headers.get("Authorization")).split("/")[2]
    body = "" if event_name.endswith(_WITH_A_TIME) else str(request.body)
    return (event_name, region, request.url or "", body)
