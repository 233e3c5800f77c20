"""Counts the S3 requests of a thousand nodes that wait for a job, start it, and run it.

The watch and the job program are the real ones, with a clock that jumps from event to event and a dictionary as S3. The
processes of the job and the network between nodes are not simulated.
"""

import hashlib
import heapq
import io
import itertools
import json
import os
import random
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from tools.demo.private_aws import PrivateAws
from trainium_wire.keys import CURRENT_JOB_KEY, JOBS_PREFIX, MEMBERSHIP_KEY, RECORDS_PREFIX
from trainium_wire.membership import Membership

sys.path.append(str(Path(__file__).parents[2] / "userdata/trainium_userdata/node"))
from trn_job.attempt import Attempt
from trn_job.launch import read
from trn_job.store import Store
from trn_node.objects import Object, Objects
from trn_node.watch import TICK, Watch

NODES = 1000
JOB = "simulated-20261122-000000"

WARM_UP, BEGINNING, PHASE = 2 * TICK, 3 * TICK, 30
"""Seconds. Within a phase, nodes look at least once at everything that they look at."""

_PLAN = {"rendezvous_port": 41000, "suppress_checks": [], "internode_ssh": False, "internode": False}
_URL = "s3://records"
_SPEC = {
    **{"format": 1, "id": JOB, "name": "simulated", "nodes": NODES, "processes_per_node": 32, "command": "true"},
    **{"setup": None, "environment": {}, "retries": 1, "resume_from": None, "time_limit_seconds": None},
}


@dataclass
class Clock:
    """A simulated clock and its scheduled events."""

    now: float = 1_800_000_000.0
    _events: list[tuple[float, int, Callable[[], float | None]]] = field(default_factory=list[Any])
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def repeat(self, work: Callable[[], float | None], after: float) -> None:
        """Call a function after a number of seconds, and again after as many seconds as it returns, until it returns
        None.
        """
        heapq.heappush(self._events, (self.now + after, next(self._numbers), work))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, work = heapq.heappop(self._events)
            again = work()
            if again is not None:
                self.repeat(work, again)
        self.now = end


class CountingS3(Objects):
    """S3 as a dictionary that counts requests by second and method."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.objects: dict[str, bytes] = {}
        self.requests: Counter[tuple[int, str]] = Counter()

    def get(self, url: str, etag: str | None = None) -> tuple[bytes, str] | None:
        self._count("GET")
        body = self.objects.get(url)
        if body is None:
            return None
        found = hashlib.sha256(body).hexdigest()
        return None if found == etag else (body, found)

    def put(self, url: str, body: bytes, content_type: str = "application/json") -> None:  # noqa: ARG002
        self._count("PUT")
        self.objects[url] = body

    def create(self, url: str, body: bytes, content_type: str = "application/json") -> bool:  # noqa: ARG002
        self._count("PUT")
        return self.objects.setdefault(url, body) is body

    def get_file(self, url: str, file: Path) -> bool:
        self._count("GET")
        file.write_bytes(self.objects.get(url, b""))
        return url in self.objects

    def list(self, url: str, *, below: bool = False, most_requests: int | None = None) -> list[Object]:  # noqa: ARG002
        self._count("LIST")
        return []

    def rates(self, begin: float, end: float) -> Mapping[str, tuple[float, int]]:
        """Requests per second by method: on average, and in the busiest second."""
        found: dict[str, tuple[float, int]] = {}
        for method in sorted({method for _, method in self.requests}):
            each = [self.requests[second, method] for second in range(int(begin), int(end))]
            found[method] = (sum(each) / len(each), max(each))
        return found

    def _count(self, method: str) -> None:
        self.requests[int(self._clock.now), method] += 1


class NoNotices:
    """The metadata service of a node with no announced termination."""

    def get(self, _path: str) -> str | None:
        return None


def _no_secret(arn: str) -> str:
    """The simulated job has no secrets."""
    raise OSError(arn)


class SimulatedUnit:
    """Stands in for systemd: the node's part of the job, without its processes."""

    def __init__(self, folder: Path, s3: CountingS3, clock: Clock) -> None:
        self._folder, self._s3, self._clock = folder, s3, clock
        self._begun: tuple[str, int, bool] = ("", 0, True)
        self.active = self.is_ending = False

    def begun(self) -> tuple[str, int, bool]:
        return self._begun

    def is_active(self) -> bool:
        return self.active

    def start(self, job: str, attempt: int, launch: dict[str, Any]) -> None:
        self._begun = (job, attempt, True)
        place = self._folder / f"{job}-{attempt}"
        place.mkdir()
        file = place / "launch.json"
        file.write_text(json.dumps({**launch, "folder": str(place)}))
        part = Attempt(read(str(file)), Store(self._s3, launch["url"]), secret_of=_no_secret)
        part.peer_port = 1  # The node answers its peers.
        for repeating in part.beside():
            self._clock.repeat(partial(self._work, repeating.work, repeating.seconds), 0)
        part._prepare()  # pyright: ignore[reportPrivateUsage]
        # The thread with no other task reports the start.
        part._report()  # pyright: ignore[reportPrivateUsage]
        self.active = True  # Last: a node whose part could not begin does not count as started.

    def _work(self, work: Callable[[], object], seconds: Callable[[], float]) -> float | None:
        if not self.active:
            return None
        work()
        return seconds()


class Cluster:
    """Proven nodes, each with its own folder, started at random moments."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.s3 = CountingS3(self.clock)
        self.units: list[SimulatedUnit] = []
        self.unreachable: set[str] = set()
        self._files: dict[str, str] = {}
        moments = random.Random(0)
        names = [f"i-{number:017x}" for number in range(NODES)]
        addresses = {name: f"10.0.{number // 250}.{number % 250 + 4}" for number, name in enumerate(names)}
        self.put(MEMBERSHIP_KEY, Membership.of(addresses).to_json().encode())
        for name in names:
            root = folder / name
            root.mkdir()
            files = _files_of(name, addresses[name])
            unit = SimulatedUnit(root, self.s3, self.clock)
            self.units.append(unit)
            with mock.patch("trn_node.cluster_job.JobUnit", return_value=unit):
                self._files = files
                watch = Watch(NoNotices(), self.s3, lambda: self.clock.now)  # pyright: ignore[reportArgumentType]
            step = partial(self._step, watch, root, files)
            self.clock.repeat(step, moments.uniform(0, TICK))

    def read(self, name: str) -> str:
        """Read a file of the node that is being simulated."""
        return self._files.get(name, "")

    def write(self, name: str, text: str) -> None:
        self._files[name] = text

    def put(self, key: str, body: bytes) -> None:
        self.s3.objects[f"{_URL}/{key}"] = body

    def submit(self) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz"):
            pass
        self.put(f"{JOBS_PREFIX}/{JOB}/source.tar.gz", packed.getvalue())
        self.put(CURRENT_JOB_KEY, json.dumps(_SPEC).encode())

    def lose_a_node(self) -> None:
        """One node stops answering: the attempt ends on all nodes, and the membership does not change yet."""
        end = {"result": "node-lost", "reason": "", "node": 1, "rank": None, "exit_code": None}
        self.put(f"{JOBS_PREFIX}/{JOB}/attempts/1/end.json", json.dumps(end).encode())
        self.unreachable.add("10.0.0.5")
        for unit in self.units:
            unit.active = False

    def measure(self, seconds: float) -> Mapping[str, tuple[float, int]]:
        begin = self.clock.now
        self.clock.run(seconds)
        return self.s3.rates(begin, self.clock.now)

    def _step(self, watch: Watch, root: Path, files: dict[str, str]) -> float:
        os.environ["ROOT"], self._files = str(root), files
        watch.step()
        return watch.seconds


def _files_of(name: str, address: str) -> dict[str, str]:
    record = {"instance_id": name, "state": "proven", "reason": "", "checks": [], "address": address, "membership": ""}
    return {
        "etc/trn/places.env": f"TRN_REGION=us-west-2\nTRN_REPORT_URL={_URL}/{RECORDS_PREFIX}\n",
        "var/lib/trn/record.json": json.dumps({**record, "time": "2026-11-22T00:00:00Z"}),
        "proc/sys/kernel/random/boot_id": "e2f1ad3c-74a0-4150-b3a5-96839dc4d8f3\n",
    }


def requests_of_nodes(_aws: PrivateAws) -> Iterator[tuple[str, str]]:
    """The busiest second of each phase."""
    phases: dict[str, Mapping[str, tuple[float, int]]] = {}
    with ExitStack() as on:
        memory = Path("/dev/shm")
        folder = on.enter_context(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None))
        on.enter_context(mock.patch.dict(os.environ))
        for name, answer in {
            "trn_node.files.plan": _PLAN,
            "trn_node.cluster.unreachable": set[str](),
            "trn_node.watch.log": None,
            "trn_job.peers.answers": True,
            "builtins.print": None,
        }.items():
            on.enter_context(mock.patch(name, return_value=answer))
        cluster = Cluster(Path(folder))
        on.enter_context(mock.patch("trn_node.files.read", cluster.read))
        on.enter_context(mock.patch("trn_node.files.write", cluster.write))
        on.enter_context(mock.patch("trn_node.cluster_job.unreachable", return_value=cluster.unreachable))
        cluster.measure(WARM_UP)
        phases["wait for a job"] = cluster.measure(PHASE)
        cluster.submit()
        phases["begin it"] = cluster.measure(BEGINNING)
        started = sum(unit.active for unit in cluster.units)
        phases["run it"] = cluster.measure(PHASE)
        cluster.lose_a_node()
        phases["wait for another node"] = cluster.measure(PHASE)
    assert started == NODES, f"{started} of {NODES} nodes began"
    for phase, rates in phases.items():
        found = ", ".join(f"{method} {mean:.0f}, at most {most}" for method, (mean, most) in rates.items() if most)
        yield f"requests per second to S3 of {NODES:,} nodes that {phase}", found
