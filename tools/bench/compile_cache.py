"""How long a node takes to fill its compile cache from S3, against one plain download of the same bytes.

The node's own code reads from a stand-in of S3: a process that sends files, as fast as loopback takes them, or all of
them together at a set rate, as a line has one. Not measured: TLS, S3's own delays, and the processors of Trn instances,
which have instructions for SHA-256.
"""

import hashlib
import http.client
import multiprocessing
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from unittest import mock
from urllib.parse import urlsplit

# First: it makes the node's modules importable.
from tools.bench import node_program as _node_program  # noqa: F401  # pyright: ignore[reportUnusedImport]
from tools.bench.object_server import object_server
from tools.bench.result import Result
from tools.bench.timing import seconds
from tools.demo.private_aws import PrivateAws
from trainium_core.compile_cache.place import SUFFIX, Place, place_of
from trn_cache.cache import Cache
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS, Entry
from trn_cache.packing import pack
from trn_cache.use import Use
from trn_node.imds import Credentials, Imds
from trn_node.objects import sha256_of

ENTRIES, BYTES = 43, 509 * 1000**2
"""Of a model that was reported (scttfrdmn/speech-enhancement-arena, TRAINIUM_NOTES.md)."""

LINE = 100 * 1000**2
"""Bytes in a second over all connections. S3 gives 85 to 90 MB/s to one (S3 user guide, optimizing performance)."""

RUNS = 3
WORKERS = 8
COMPILER = "2.21.18209.0+043b1bf7"
PLACE = place_of(compiler=COMPILER, instance_type="trn2.48xlarge", lnc=2, stack="xla", world_size=WORKERS)
URL = "s3://compiled/neuron-compile-cache"


class _Keys(Imds):
    def credentials(self) -> Credentials:
        return Credentials("bench", "bench", "bench")


@dataclass
class _Node:
    """A node with an empty disk. served: folder of the objects."""

    folder: Path
    entries: Entries

    def start(self) -> Cache:
        """What is done before a job's command."""
        layout = LAYOUTS[PLACE.stack]
        cache = Cache(self.entries, URL, PLACE, self.folder / PLACE.path, layout, say=lambda _: None)
        cache.prepare()
        cache.fill()
        assert len(cache.at_start) == ENTRIES, cache.report.warnings
        return cache

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def compile_cache(_aws: PrivateAws) -> Iterator[Result]:
    """Fill, warm starts, requests, and the overhead on a job with nothing to compile."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trn-bench-cache-")))
        (folder / "etc/trn").mkdir(parents=True)
        (folder / "etc/trn/places.env").write_text("TRN_REGION=us-west-2\n")
        served = folder / "served"
        store_entries(served, PLACE)
        for rate in (LINE, 0):
            endpoint = stack.enter_context(object_server(served, rate))
            stack.enter_context(mock.patch.dict(os.environ, {"ROOT": str(folder), "AWS_ENDPOINT_URL_S3": endpoint}))
            node = _Node(folder / "node", Entries(_Keys(retries=0), retries=0))
            yield _fill(node, endpoint, rate)
            yield _warm_start(node, rate)
        yield _requests(node)
        yield _overhead(node)


def store_entries(served: Path, place: Place) -> None:
    """Packed entries of random bytes, the largest ten times as large as the smallest, and one object of all bytes."""
    random_bytes = random.Random(14)
    weights = [random_bytes.uniform(1, 10) for _ in range(ENTRIES)]
    made = served.parent / "made"
    whole = served / "whole"
    whole.parent.mkdir(parents=True)
    with whole.open("wb") as everything:
        for number, weight in enumerate(weights):
            name = f"neuronxcc-{COMPILER}/MODULE_{number}+d7517139"
            path = made / name
            path.mkdir(parents=True)
            (path / "model.neff").write_bytes(random_bytes.randbytes(round(BYTES * weight / sum(weights))))
            (path / "model.done").write_text("\n")
            packed = served / "compiled/neuron-compile-cache" / place.path / f"{name}{SUFFIX}"
            packed.parent.mkdir(parents=True, exist_ok=True)
            pack(Entry(name, path, path / "model.neff"), packed)
            everything.write(packed.read_bytes())
            packed.with_name(f"{packed.name}.sha256").write_text(sha256_of(packed))
            shutil.rmtree(path)


def _fill(node: _Node, endpoint: str, rate: int) -> Result:
    """Over loopback the processors decide, so that the download computes a checksum there as well."""
    taken: list[tuple[float, float]] = []
    file = node.folder.parent / "downloaded"
    for _ in range(RUNS):
        node.clear()
        downloaded = seconds(lambda: _download(endpoint, file, digests=not rate))
        taken.append((seconds(node.start), downloaded))
    filled, plain = (median(times) for times in zip(*taken, strict=True))
    what = "one download of the same bytes" if rate else "one download and SHA-256 of the same bytes"
    return Result(
        name=f"fill of a compile cache {_over(rate)} / {what}",
        value=filled / plain,
        aim=1.1,
        found=f"{filled:.2f} s / {plain:.2f} s, {ENTRIES} entries, {BYTES / 1000**2:.0f} MB",
        method=f"medians of {RUNS} in turn, by the node's own code, from a process that sends files",
    )


def _download(endpoint: str, file: Path, *, digests: bool) -> None:
    """All bytes as one object, one after the other, into a file."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
    connection.request("GET", "/whole")
    response, digest = connection.getresponse(), hashlib.sha256()
    with file.open("wb") as out:
        while block := response.read(1024 * 1024):
            out.write(block)
            if digests:
                digest.update(block)
    connection.close()


def _requests(node: _Node) -> Result:
    node.clear()
    before = node.entries.requests
    node.start()
    sent = node.entries.requests - before
    return Result(
        name="requests of a fill / entries",
        value=sent / ENTRIES,
        aim=2,
        found=f"{sent} requests, {ENTRIES} entries",
        method="counted",
    )


def _warm_start(node: _Node, rate: int) -> Result:
    """From an empty disk until every worker has read every module: one fill for all of them.

    The workers are there before: to start a process is no work of the cache, and a stack's takes seconds.
    """

    def start(workers: int) -> float:
        node.clear()
        filled = multiprocessing.Event()
        root = node.folder / PLACE.path
        processes = [multiprocessing.Process(target=_use, args=(root, filled)) for _ in range(workers)]
        for process in processes:
            process.start()

        def whole() -> None:
            node.start()
            filled.set()
            for process in processes:
                process.join()

        return seconds(whole)

    taken = [(start(WORKERS), start(1)) for _ in range(RUNS)]
    many, one = (median(times) for times in zip(*taken, strict=True))
    return Result(
        name=f"warm start of {WORKERS} workers {_over(rate)} / of one",
        value=many / one,
        aim=1.2,
        found=f"{many:.2f} s / {one:.2f} s, {os.cpu_count()} processors",
        method=f"medians of {RUNS} in turn: the fill, then workers that wait for it each read every module once",
    )


def _use(root: Path, filled: Event) -> None:
    block = bytearray(1024 * 1024)
    filled.wait()
    for file in root.rglob("model.neff"):
        with file.open("rb", buffering=0) as content:
            while content.readinto(block):
                pass


def _over(rate: int) -> str:
    return f"over a line of {rate // 1000**2} MB/s" if rate else "over loopback"


def _overhead(node: _Node) -> Result:
    """With every entry on the disk: what the cache adds before the command and after it."""

    def around(_: int) -> float:
        def work() -> None:
            cache = node.start()
            cache.store(settled=True)
            Use(cache, node.entries, URL).as_record()

        return seconds(work)

    node.start()
    taken = median(map(around, range(RUNS)))
    return Result(
        name="seconds that the compile cache adds to a job with nothing to compile",
        value=taken,
        aim=1,
        found=f"{taken * 1000:.0f} ms, {ENTRIES} entries on the disk",
        method=f"median of {RUNS}: look at the folder, list, nothing to store, record",
    )
