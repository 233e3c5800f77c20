"""Nodes that compile, store, read, crash and are cleaned, in any order: no wrong hit, no finished entry lost."""

import contextlib
import hashlib
import io
import shutil
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.userdata import fake_compiler
from tests.userdata.cache_node import CacheNode, place
from trn_cache.entries import Entries, Stored
from trn_cache.layouts import LAYOUTS
from trn_node.web import Sink

MODULES = st.sampled_from(["a", "b", "c"])
NODES = st.sampled_from([0, 1])
CRASHES = st.sampled_from([None, None, 0, 1, 2, 3])


class CrashError(Exception):
    """The node's process ends here."""


class MemoryEntries(Entries):
    """Objects in memory. refuses: every request; crash_in: after so many requests, before or after it is done."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.refuses = False
        self.crash_in: int | None = None

    def _count(self) -> None:
        if self.refuses:
            raise OSError("S3 refuses")
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in < 0:
                raise CrashError

    def read(self, url: str, sink: Sink) -> tuple[str, str] | None:
        self._count()
        body, digest = self.objects.get(url, (b"", ""))
        if body:
            sink.take(io.BytesIO(body[: len(body) // 2]))
            self._count()
            sink.take(io.BytesIO(body))
        return (digest, _etag(body)) if url in self.objects else None

    def add(self, url: str, file: Path, digest: str, *, replaced: str = "", check: Callable[[], object]) -> bool:
        check()
        self._count()
        body = file.read_bytes()
        assert hashlib.sha256(body).hexdigest() == digest
        there = url in self.objects
        stored = _etag(self.objects[url][0]) == replaced if replaced and there else not (there or replaced)
        if stored:
            self.objects[url] = body, digest
        self._count()
        return stored

    def entries(self, url: str, most_requests: int = 1) -> list[Stored]:
        del most_requests
        self._count()
        found = sorted(each for each in self.objects if each.startswith(url))
        return [Stored(each[len(url) :], len(self.objects[each][0]), "") for each in found]


class Caches(RuleBasedStateMachine):
    """Two nodes with a cache of one stack, and one bucket."""

    stack = "xla"

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="trn-cache-"))
        self._s3 = MemoryEntries()
        self._numbers = count()
        self._made: list[set[str]] = [set(), set()]
        self._nodes = [self._new_node(0), self._new_node(1)]

    def teardown(self) -> None:
        shutil.rmtree(self._folder)

    def _new_node(self, number: int) -> CacheNode:
        folder = self._folder / f"{number}-{next(self._numbers)}"
        node = CacheNode(folder, self._s3, place(self.stack), urgent=number == 0)
        node.cache.prepare()
        return node

    @rule(number=NODES, module=MODULES)
    def compile(self, number: int, module: str) -> None:
        node = self._nodes[number]
        if not node.has(module):
            node.compile(module)
        self._made[number].add(module)

    @rule(number=NODES, module=MODULES, finished=st.integers(0, 6))
    def compile_and_crash(self, number: int, module: str, finished: int) -> None:
        node = self._nodes[number]
        if not node.has(module):
            lock = fake_compiler.lock_of(self.stack, node.cache.root, module)
            lock.parent.mkdir(parents=True, exist_ok=True)
            lock.touch()
            for step in [*fake_compiler.steps(self.stack, node.cache.root, module)][:finished]:
                step()

    @rule(number=NODES, crash_in=CRASHES)
    def begin(self, number: int, crash_in: int | None) -> None:
        self._s3.crash_in = crash_in
        try:
            self._nodes[number].begin()
        except CrashError:
            pass
        else:
            files = [file for file in self._nodes[number].cache.root.rglob("*") if file.is_file()]
            assert not [file for file in files if ".lock" in file.name or ".tmp" in file.name]
        self._s3.crash_in = None

    @rule(number=NODES, crash_in=CRASHES)
    def store(self, number: int, crash_in: int | None) -> None:
        self._s3.crash_in = crash_in
        with contextlib.suppress(CrashError, OSError):
            self._nodes[number].cache.store()
        self._s3.crash_in = None

    @rule(number=NODES)
    def replace_node(self, number: int) -> None:
        """What was not stored goes with its disk."""
        self._nodes[number] = self._new_node(number)
        self._made[number] = set()

    @rule(number=NODES, torn=st.sets(MODULES))
    def lose_power(self, number: int, torn: set[str]) -> None:
        """Before the last blocks of some entries are on the disk. The next job begins after the boot."""
        node = self._nodes[number]
        for module, name in ((each, fake_compiler.name_of(self.stack, each)) for each in sorted(torn)):
            if entry := LAYOUTS[self.stack].finished(node.cache.root).get(name):
                content = entry.result.read_bytes()
                entry.result.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))
                self._made[number].discard(module)
        node.boot = f"boot {next(self._numbers)}"
        node.begin()
        # What nothing had looked at since it was compiled is compiled again.
        self._made[number] &= self._finished(node)

    @rule(module=MODULES)
    def expire(self, module: str) -> None:
        self._s3.objects.pop(self._url(module), None)

    @rule(module=MODULES)
    def poison(self, module: str) -> None:
        """With what is as well packed as before."""
        if self._url(module) in self._s3.objects:
            body, digest = self._s3.objects[self._url(module)]
            self._s3.objects[self._url(module)] = body.replace(b"NEFF", b"TORN"), digest

    @rule(refuses=st.booleans())
    def refuse(self, refuses: bool) -> None:
        self._s3.refuses = refuses

    @rule(number=NODES)
    def begin_and_store(self, number: int) -> None:
        """After a whole job with S3 there, the bucket holds all that the node has."""
        self._s3.refuses = False
        node = self._nodes[number]
        node.begin()
        node.cache.store()
        for module in self._finished(node):
            assert self._url(module) in self._s3.objects

    @invariant()
    def no_wrong_hit(self) -> None:
        for node in self._nodes:
            for module in self._finished(node):
                assert node.result(module) == fake_compiler.result_of(module)

    @invariant()
    def no_finished_entry_is_lost(self) -> None:
        for node, made in zip(self._nodes, self._made, strict=True):
            assert made <= self._finished(node)

    def _finished(self, node: CacheNode) -> set[str]:
        found = LAYOUTS[self.stack].finished(node.cache.root)
        return {module for module in "abc" if fake_compiler.name_of(self.stack, module) in found}

    def _url(self, module: str) -> str:
        return f"s3://compiled/neuron-compile-cache/{place(self.stack).key(fake_compiler.name_of(self.stack, module))}"


class NativeCaches(Caches):
    stack = "native"


def _etag(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()


TestCaches = Caches.TestCase
TestNativeCaches = NativeCaches.TestCase
TestCaches.settings = TestNativeCaches.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
