"""A node that is killed at every point of an operation. Arguments: WORK STACK FOLDER.

A separate small process, because it is forked for each point. It ends with a traceback at the first error, otherwise it
prints the number of the last point. The variable KEYS has credentials for the embedded AWS.
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.userdata import fake_compiler
from tests.userdata.cache_node import URL, CacheNode, Keys, place
from tests.userdata.failpoints import killed_everywhere
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS
from trn_cache.packing import BLOCK
from trn_node.imds import Credentials
from trn_node.web import Source

MODULES = ("a", "b")
_THREAD = re.compile(r"(?<=incoming/)[0-9]+")


class Bucket(Entries):
    """The bucket with the permissions of a test, which exceed a node's."""

    def contents(self) -> frozenset[tuple[str, str]]:
        """Keys and ETags."""
        return frozenset((each.key, each.etag) for each in self.entries(f"{URL}/"))

    def is_sound(self) -> bool:
        """Whether all objects match their stored digests."""
        return all(self._matches_digest(f"{URL}/{each.key}") for each in self.entries(f"{URL}/"))

    def clear(self) -> None:
        for each in self.entries(f"{URL}/"):
            self._send("DELETE", f"{URL}/{each.key}", {}, b"", (204,))

    def _matches_digest(self, url: str) -> bool:
        sink = Digest()
        found = self.read(url, sink)
        return found is not None and found[0] == sink.digest


class Digest:
    digest = ""

    def take(self, source: Source) -> int:
        content = b"".join(iter(lambda: source.read(BLOCK), b""))
        self.digest = hashlib.sha256(content).hexdigest()
        return len(content)


class KilledNode:
    def __init__(self, stack: str, folder: Path) -> None:
        self._bucket = Bucket(Keys(Credentials(*os.environ["KEYS"].split())), retries=0)
        self.stack, self._folder = stack, folder
        self._left: set[object] = set()
        self.first, self.second = (CacheNode(folder / name, self._bucket, place(stack)) for name in ("first", "second"))

    def store(self) -> Iterator[int]:
        """Objects are complete, and nothing is lost."""
        node, bucket = self.first, self._bucket
        node.begin()
        node.compile(*MODULES)
        # JAX does not mark complete entries: this records them, so that `begin` does not remove them.
        _store(node)

        def prepare() -> Callable[[], object]:
            bucket.clear()
            node.begin()
            return lambda: _store(node)

        for point in killed_everywhere(prepare):
            if not self._was_left_before(node.folder, bucket.contents()):
                assert bucket.is_sound()
                node.begin()
                self._assert_all(node)
            yield point
        assert len(bucket.contents()) == len(MODULES)

    def read(self) -> Iterator[int]:
        """Entries are complete, and the rest is read the next time."""
        node = self.second
        self._fill_bucket()

        def prepare() -> Callable[[], object]:
            shutil.rmtree(node.folder, ignore_errors=True)
            return node.begin

        for point in killed_everywhere(prepare, changing=node.folder):
            self._assert_whole(node)
            if not self._was_left_before(node.folder):
                node.begin()
                self._assert_all(node)
                assert not [*node.cache.root.glob(".incoming*")]
            yield point

    def remove(self) -> Iterator[int]:
        """Files of dead compilers are removed the next time, and nothing else."""
        node, stack = self.first, self.stack
        root = node.cache.root
        self._fill_bucket()

        def prepare() -> Callable[[], object]:
            shutil.rmtree(node.folder, ignore_errors=True)
            node.begin()
            for step in [*fake_compiler.steps(stack, root, "half")][:4]:
                step()
            fake_compiler.fail(stack, root, "failed")
            for module in ("a", "half"):
                fake_compiler.lock_of(stack, root, module).touch()
            (root / ".incoming/1").mkdir(parents=True)
            (root / ".incoming/1/half").touch()
            return node.begin

        for point in killed_everywhere(prepare, changing=node.folder):
            if self._was_left_before(node.folder):
                yield point
                continue
            node.begin()
            self._assert_all(node)
            left = {path.name for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")}
            assert not [name for name in left if ".lock" in name or ".tmp" in name or ".log" in name], left
            assert not (root / ".incoming").exists()
            yield point

    def compile(self) -> Iterator[int]:
        """A compiler with its lock, which neither delays others nor leaves entries that are used."""
        node, stack, bucket = self.first, self.stack, self._bucket
        root = node.cache.root
        # A process that finds a lock gives up immediately.
        fake_compiler.TIMEOUT_SECONDS = 0

        def prepare() -> Callable[[], object]:
            shutil.rmtree(node.folder, ignore_errors=True)
            bucket.clear()
            node.begin()
            return lambda: fake_compiler.work(stack, root, "a")

        for point in killed_everywhere(prepare):
            was_there = node.has("a")
            _store(node)
            assert bool(bucket.contents()) == was_there
            assert bucket.is_sound()
            node.begin()
            assert not [*root.rglob("*.lock")]
            assert node.has("a") == was_there
            fake_compiler.work(stack, root, "a")
            assert node.result("a") == fake_compiler.result_of("a")
            yield point

    def _fill_bucket(self) -> None:
        node = CacheNode(self._folder / "filling", self._bucket, place(self.stack))
        node.begin()
        node.compile(*MODULES)
        _store(node)

    def _was_left_before(self, folder: Path, contents: frozenset[tuple[str, str]] = frozenset()) -> bool:
        """Whether a kill at another point left the same disk and bucket, so that the next step was already tested."""
        files = ((str(path.relative_to(folder)), path) for path in folder.rglob("*"))
        on_disk = frozenset((_THREAD.sub("", name), path.is_dir() or path.read_bytes()) for name, path in files)
        left = (on_disk, contents)
        was_left = left in self._left
        self._left.add(left)
        return was_left

    def _assert_all(self, node: CacheNode) -> None:
        assert all(node.has(module) for module in MODULES)
        self._assert_whole(node)

    def _assert_whole(self, node: CacheNode) -> None:
        """Every entry that counts as finished has all its bytes."""
        names = {fake_compiler.name_of(self.stack, module): module for module in MODULES}
        for name, entry in LAYOUTS[self.stack].finished(node.cache.root).items():
            assert entry.result.read_bytes() == fake_compiler.result_of(names[name])
            assert len(entry.files) == (4 if self.stack == "xla" else 1)


def _store(node: CacheNode) -> None:
    node.cache.store(settled=True)
    assert not node.cache.report.warnings


if __name__ == "__main__":
    print(max(getattr(KilledNode(sys.argv[2], Path(sys.argv[3])), sys.argv[1])()))
