"""Many workers, several nodes and two clusters at one bucket, all of them real processes.

The lock of a stack is a file in its folder: it holds for the workers of a node, and nodes compile side by side.
"""

import multiprocessing
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tests.userdata import fake_compiler
from tests.userdata.cache_node import URL, CacheNode
from trn_cache.use import Use

WORKERS, MODULES = 64, [f"module{number}" for number in range(200)]
"""A trn2.48xlarge has 64 NeuronCores with LNC 2."""
FEW_WORKERS, FEW = 2, MODULES[:24]
"""Where nodes meet at a bucket: how many workers share a node's lock does not matter to it."""
STORE_SECONDS = 0.2
PROCESSES = multiprocessing.get_context("fork")
NewNode = Callable[..., CacheNode]


class Ran(NamedTuple):
    """What a node says of its job. compiled: by all its workers. requests: to S3."""

    codes: set[int]
    compiled: Sequence[str]
    stored: int
    requests: int
    record: Mapping[str, Any]

    @property
    def hits(self) -> int:
        return self.record["hits"]


def run(node: CacheNode, workers: int, modules: Sequence[str]) -> Ran:
    """A job: what is there is read, and what is new is stored while the workers run and when they have ended."""
    before = node.s3.requests
    node.begin()
    processes = node.start_workers(workers, modules)
    while any(process.poll() is None for process in processes):
        with suppress(subprocess.TimeoutExpired):
            processes[0].wait(STORE_SECONDS)
        node.cache.store()
    node.cache.store(settled=True)
    out = [process.communicate()[0] for process in processes]
    return Ran(
        codes={process.returncode for process in processes},
        compiled=sorted(line.split()[1] for text in out for line in text.splitlines()),
        stored=node.cache.report.stored,
        requests=node.s3.requests - before,
        record=Use(node.cache, node.s3, URL).as_record(explain=False),
    )


def run_together(nodes: Sequence[CacheNode], workers: int, modules: Sequence[str]) -> list[Ran]:
    """Each node in a process of its own, all at the same time."""
    barrier = PROCESSES.Barrier(len(nodes))

    def report(node: CacheNode, theirs: Any) -> None:
        barrier.wait()
        theirs.send(run(node, workers, modules))

    running: list[tuple[Any, Any]] = []
    for node in nodes:
        ours, theirs = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=report, args=(node, theirs))
        process.start()
        theirs.close()
        running.append((process, ours))
    found = [ours.recv() for _, ours in running]
    for process, _ in running:
        process.join()
    return found


def stored_by(bucket: Any) -> int:
    return len([*bucket.objects.all()])


def assert_sound(node: CacheNode, modules: Sequence[str]) -> None:
    for module in modules:
        assert node.result(module) == fake_compiler.result_of(module)


def test_64_workers_compile_each_of_200_modules_once_and_another_node_has_all(new_node: NewNode, bucket: Any) -> None:
    first, second = new_node(), new_node()
    cold = run(first, WORKERS, MODULES)
    assert (cold.codes, cold.compiled, cold.stored) == ({0}, sorted(MODULES), len(MODULES))
    assert stored_by(bucket) == len(MODULES)
    warm = run(second, FEW_WORKERS, MODULES)
    assert (warm.codes, warm.compiled, warm.hits, warm.stored) == ({0}, [], len(MODULES), 0)
    assert max(cold.requests, warm.requests) <= len(MODULES) + 1
    assert_sound(second, MODULES)


def test_four_cold_nodes_store_each_entry_once(new_node: NewNode, bucket: Any) -> None:
    """The first stores without a look at what others have stored, as the first node of a job does."""
    nodes = [new_node(urgent=not number) for number in range(4)]
    ran = run_together(nodes, FEW_WORKERS, FEW)
    assert all(node.codes == {0} and node.compiled == sorted(FEW) for node in ran)
    assert sum(node.stored for node in ran) == stored_by(bucket) == len(FEW)
    assert sum(node.requests for node in ran) <= 2 * len(FEW) * len(nodes)
    late = new_node()
    (after,) = run_together([late], FEW_WORKERS, FEW)
    assert (after.compiled, after.hits, after.stored) == ([], len(FEW), 0)
    assert_sound(late, FEW)
