"""Preflight over eight regions with 100 ms added to every call, against the longest chain of calls.

What the embedded AWS answers is recorded once and played again, so that the time is that of `trn` alone.
"""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

import boto3
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from trainium_core.adapters.aws_account import AwsAccount
from trainium_core.adapters.aws_service import Clients
from trainium_core.catalog import Catalog, builtin_catalog
from trainium_core.plan import Plan
from trainium_core.preflight import CHECKS, preflight
from trainium_core.preflight.regions import preflight_in_regions
from trainium_local import lifecycle
from trainium_local.environment import safe_environment
from trainium_local.server import Settings

DELAY_SECONDS = 0.1
REGIONS = 8
ROUNDS = 5
AIM = 1.3
_WITH_A_TIME = (".GetMetricStatistics", ".DescribeSpotPriceHistory")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """`chain`: the longest, as operations. `ready_seconds`: with the clients made before; `cold_seconds`: without.

    Both are the fastest of ROUNDS.
    """

    regions: int
    calls: int
    chain: tuple[str, ...]
    ready_seconds: float
    cold_seconds: float

    @property
    def chain_seconds(self) -> float:
        return len(self.chain) * DELAY_SECONDS

    @property
    def ratio(self) -> float:
        return self.ready_seconds / self.chain_seconds


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


def measure() -> Timing:
    plan = _plan_for_every_region()
    regions = plan.catalog.regions[:REGIONS]
    recorder = _Recorder()
    with _embedded_aws(plan.region):
        _ask(plan, regions, Clients(recorder.session()))
        recorder.replaying = True
        clients = Clients(recorder.session())
        chain = _longest_chain(plan, recorder, clients)
        _ask(plan, regions, clients)
        recorder.calls.clear()
        _ask(plan, regions, clients)
        calls = len(recorder.calls)
        return Timing(
            regions=len(regions),
            calls=calls,
            chain=chain,
            ready_seconds=_fastest(lambda: _ask(plan, regions, clients)),
            cold_seconds=_fastest(lambda: _ask(plan, regions, Clients(recorder.session()))),
        )


def _ask(plan: Plan, regions: Sequence[str], clients: Clients) -> None:
    preflight_in_regions(plan, regions, lambda region: AwsAccount(region, clients=clients))


def _fastest(run: Callable[[], None]) -> float:
    taken: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _longest_chain(plan: Plan, recorder: _Recorder, clients: Clients) -> tuple[str, ...]:
    """Each check asked alone: how many of its calls are made one after the other, the longest such run."""
    chains: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for check in CHECKS:
        recorder.calls.clear()
        preflight(plan, AwsAccount(plan.region, clients=clients), suppressed=CHECKS.keys() - {check})
        chains[check] = _one_after_the_other(recorder.calls)
    return max(chains.values(), key=len)


def _one_after_the_other(calls: Sequence[_Call]) -> tuple[str, ...]:
    chain: list[_Call] = []
    for call in sorted(calls, key=lambda call: call.end):
        if not chain or call.start >= chain[-1].end:
            chain.append(call)
    return tuple(call.operation for call in chain)


def _plan_for_every_region() -> Plan:
    """No type is sold in eight regions, so this one pretends to be: what is asked does not depend on it."""
    known = builtin_catalog()
    zones = {region: zones for entry in known.values() for region, zones in entry.zones.items()}
    everywhere = replace(known["trn1.32xlarge"], zones=zones)
    return Plan(
        instance_type=everywhere.name,
        region="us-west-2",
        nodes=2,
        catalog=Catalog([everywhere], known.facts, known.sources),
    )


@contextmanager
def _embedded_aws(region: str) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="trn-bench-") as folder:
        health = lifecycle.start(Path(folder), Settings(region=region)).health
        try:
            environment = safe_environment(os.environ, endpoint=health.endpoint, region=region)
            with patch.dict(os.environ, environment, clear=True):
                yield
        finally:
            lifecycle.stop(Path(folder))


def _key(event_name: str, request: AWSPreparedRequest) -> tuple[str, ...]:
    """What tells requests apart. All regions have one endpoint here: theirs stands in the signature alone."""
    region = str(request.headers.get("Authorization")).split("/")[2]
    body = "" if event_name.endswith(_WITH_A_TIME) else str(request.body)
    return (event_name, region, request.url or "", body)


def report(timing: Timing) -> str:
    """The result in words."""
    return "\n".join(
        (
            f"preflight, {timing.regions} regions, {timing.calls} calls of {DELAY_SECONDS * 1000:.0f} ms",
            f"  longest chain  {timing.chain_seconds:.2f} s  {', '.join(timing.chain)}",
            f"  clients made   {timing.ready_seconds:.2f} s  {timing.ratio:.2f} times the chain (aim: {AIM})",
            f"  from nothing   {timing.cold_seconds:.2f} s  boto3 reads the descriptions of the services",
        )
    )


if __name__ == "__main__":
    print(report(measure()))
