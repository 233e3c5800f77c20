"""A folder of one stack's entries and its place in S3: filled before a run, written back during it and at its end."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from trainium_wire.cache_place import SUFFIX, Place, is_name
from trn_node.objects import file_digest

from .entries import Entries, Stored, UnstorableError
from .layouts import Entry, Layout, Unfinished
from .packing import Unpacking, pack
from .report import Report

THREADS = 8
"""Parallel requests to S3: one connection is slower than a node's network."""
INCOMING = ".incoming"
"""Folder next to the entries, in which an entry is built before it is renamed into place."""
OUTGOING = ".outgoing"
"""File next to the entries, in which an entry is packed for its upload."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BOOT = ".boot"
"""File with the ID of the boot in which the entries were stored."""
COMPLETE = ".whole"
"""File with the names of complete entries, for layouts without a mark."""
LEAST_FREE = 0.05
"""Fraction of the disk that downloads leave free."""
LONGEST_SECONDS = 900.0
"""Time limit of one fill and of one write-back, so that a slow S3 does not delay a job for longer."""
NOT_STORED = "not written to S3"


class Cache:
    """Call `prepare` and `fill` before a compiler runs, `store` any number of times during the run and once at its end.

    Args:
        s3: The entries in S3.
        url: URL of the whole compile cache.
        place: The place whose entries are used.
        folder: Folder of only this place. No other process may write there before the compiler runs.
        layout: Layout of the folder.
        urgent: Whether to store new entries without checking which ones other nodes have stored.
        say: Writes a line of text.
        clock: Seconds of a monotonic clock.
        boot: ID of this boot; empty if unknown. Default: the ID from the kernel.
    """

    def __init__(
        self,
        s3: Entries,
        url: str,
        place: Place,
        folder: Path,
        layout: Layout,
        *,
        urgent: bool = True,
        say: Callable[[str], None] = print,
        clock: Callable[[], float] = time.monotonic,
        boot: str | None = None,
    ) -> None:
        self._clock = clock
        self._s3, self.place, self.layout, self._urgent = s3, place, layout, urgent
        self.folder = folder
        self.root = layout.root(folder)
        self.url = f"{url.rstrip('/')}/{place.path}/"
        self.report = Report(say)
        self._in_s3: set[str] = set()
        self._broken: dict[str, str] = {}
        self._lock = threading.Lock()
        self._settling: dict[str, tuple[object, float]] = {}
        self._complete: set[str] = set()
        self._boot = _text(BOOT_ID) if boot is None else boot
        self.at_start: dict[str, Path] = {}
        """Result files of the entries at the start of the compiler, by name."""
        self.in_s3_at_start: Mapping[str, Stored] = {}

    def prepare(self) -> None:
        """Remove all but finished entries, and all entries if they may date from an earlier boot. Raises OSError.

        Writes are not synced to the disk, because that would delay every job. A power failure may therefore leave an
        incomplete entry under its final name.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        if not self._boot or _text(self.root / BOOT) != self._boot:
            shutil.rmtree(self.root)
            self.root.mkdir()
            (self.root / BOOT).write_text(self._boot)
        shutil.rmtree(self.root / INCOMING, ignore_errors=True)
        dead = self.layout.unfinished(self.root)
        found = self.layout.finished(self.root)
        if self.layout.settle_seconds:
            self._complete = {*_text(self.root / COMPLETE).splitlines()}
            unsettled = [entry.path for name, entry in found.items() if name not in self._complete]
            dead.update(dict.fromkeys(unsettled, Unfinished("maybe incomplete")))
        for path, unfinished in dead.items():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            self.report.remove(str(path.relative_to(self.root)), unfinished.why)

    def fill(self, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Download missing entries from S3. Errors of a download are reported, not raised.

        Args:
            is_cancelled: Returns whether to end the downloads early. Default: never.

        Raises:
            OSError: The list of complete entries cannot be written.
        """
        here = self.layout.finished(self.root)
        try:
            listed = self._list()
            self.in_s3_at_start = listed
            self._in_s3 = {*listed}
            self._read_all([each for name, each in listed.items() if name not in here], is_cancelled)
        except OSError as error:
            self.report.fail("not filled from S3", error)
        finally:
            shutil.rmtree(self.root / INCOMING, ignore_errors=True)
        entries = self.layout.finished(self.root)
        self._remember_complete(entries)
        self.at_start = {name: entry.result for name, entry in entries.items()}
        for result in self.at_start.values():
            _mark_unread(result)

    def store(self, *, settled: bool = False) -> None:
        """Upload finished entries that are not in S3. Errors are reported, not raised; the next call continues.

        Args:
            settled: Whether all processes that write to the folder have ended without being killed.
        """
        with self._lock:
            try:
                self._store_all(self._limit(), settled=settled)
            except OSError as error:
                self.report.fail(NOT_STORED, error)

    def used(self) -> tuple[set[str], set[str]]:
        """The names of the entries from the start that were read, and the names of new entries."""
        read = {name for name, result in self.at_start.items() if _was_read(result)}
        return read, {*self.layout.finished(self.root)} - {*self.at_start}

    @property
    def was_used(self) -> bool:
        """Whether any entry from the start was read."""
        return any(map(_was_read, self.at_start.values()))

    def intact_in_s3(self) -> list[Stored]:
        """The entries in S3 at the start, except invalid ones."""
        return [each for name, each in self.in_s3_at_start.items() if name not in self._broken]

    def failures(self) -> dict[str, str]:
        """Entries that failed to compile, with the last line of the compiler's log."""
        found = self.layout.unfinished(self.root)
        return {str(path.relative_to(self.root)): each.why for path, each in found.items() if each.failed}

    def compile_seconds(self, names: Iterable[str]) -> float:
        """The total compile time of the named entries, from the times of their files."""
        entries = self.layout.finished(self.root)
        seconds = 0.0
        for name in names:
            with contextlib.suppress(OSError, KeyError):
                seconds += entries[name].compile_seconds or 0
        return seconds

    def _store_all(self, check: Callable[[], object], *, settled: bool) -> None:
        new = self._new(settled=settled)
        if new and not self._urgent:
            self._in_s3 |= {*self._list()} - {*self._broken}
            new = self._new(settled=settled)
        packed = self.root / OUTGOING
        for entry in new:
            try:
                if self._pack(entry, packed):
                    self._store(entry, packed, check)
            except UnstorableError as error:
                # The other entries are stored.
                self.report.warn(f"{entry.name} is not stored: {error}")
            finally:
                packed.unlink(missing_ok=True)

    def _limit(self) -> Callable[[], None]:
        """A function that raises OSError once a fill or write-back that starts now exceeds the time limit."""
        until = self._clock() + LONGEST_SECONDS

        def check() -> None:
            if self._clock() > until:
                raise OSError(f"not done after {LONGEST_SECONDS / 60:.0f} minutes")

        return check

    def _new(self, *, settled: bool) -> list[Entry]:
        found = self.layout.finished(self.root)
        if self.layout.settle_seconds:
            found = {name: entry for name, entry in found.items() if settled or self._has_settled(entry)}
            self._remember_complete(found)
        return [entry for name, entry in sorted(found.items()) if name not in self._in_s3]

    def _has_settled(self, entry: Entry) -> bool:
        """Whether an entry has been unchanged for long enough, by the monotonic clock: file times can be changed."""
        if entry.name in self._complete:
            return True
        try:
            signature = entry.signature
        except OSError:
            return False
        before, since = self._settling.get(entry.name, (None, 0.0))
        if signature != before:
            self._settling[entry.name] = signature, self._clock()
            return False
        return self._clock() - since >= self.layout.settle_seconds

    def _remember_complete(self, names: Iterable[str]) -> None:
        """Store the names of complete entries, so that `prepare` recognises them after a crash."""
        if self.layout.settle_seconds and not self._complete.issuperset(names):
            self._complete.update(names)
            new = self.root / f"{COMPLETE}-new"
            new.write_text("".join(f"{name}\n" for name in sorted(self._complete)))
            new.replace(self.root / COMPLETE)

    def _list(self) -> dict[str, Stored]:
        found = self._s3.entries(self.url)
        return {each.key[: -len(SUFFIX)]: each for each in found if each.key.endswith(SUFFIX)}

    def _read_all(self, wanted: list[Stored], is_cancelled: Callable[[], bool]) -> None:
        disk = shutil.disk_usage(self.root)
        free = disk.free - disk.total * LEAST_FREE
        fitting: list[Stored] = []
        for each in sorted(wanted, key=lambda one: one.size):
            free -= each.size
            if free > 0:
                fitting.append(each)
        if len(fitting) < len(wanted):
            self.report.warn(f"no disk space for {len(wanted) - len(fitting)} of {len(wanted)} entries")
        stop = threading.Event()
        in_time = self._limit()

        def check() -> None:
            in_time()
            if is_cancelled():
                raise OSError("no longer wanted")

        def read(each: Stored) -> int:
            if stop.is_set() or is_cancelled():
                return 0
            try:
                return each.size if self._read(each, check) else 0
            except OSError:
                if is_cancelled():
                    return 0
                # Reads that have started continue.
                stop.set()
                raise

        incoming = self.root / INCOMING
        incoming.mkdir(exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            # The largest first, so that the last one does not take long.
            tasks = [pool.submit(read, each) for each in reversed(fitting)]
            concurrent.futures.wait(tasks)
        sizes = [task.result() for task in tasks if not task.exception()]
        self.report.fetched += sum(1 for size in sizes if size)
        self.report.fetched_bytes += sum(sizes)
        for task in tasks:
            task.result()

    def _read(self, stored: Stored, check: Callable[[], object]) -> bool:
        """Download an entry atomically. Returns whether it is in S3 and valid. Raises OSError, also if `check` does."""
        name = stored.key[: -len(SUFFIX)]
        target = self.root / name
        if not is_name(name):
            self.report.warn(f"{stored.key} is not the name of an entry: not used")
            return False
        part = self.root / INCOMING / f"{threading.get_ident()}"
        part.mkdir(parents=True, exist_ok=True)
        whole = part / target.name
        unpacking = Unpacking(whole, check)
        found = self._s3.read(self.url + stored.key, unpacking)
        if found is None:
            # The entry was deleted in the meantime.
            self._in_s3.discard(name)
            return False
        digest, etag = found
        problem = "its checksum is wrong" if unpacking.digest != digest else unpacking.problem
        if not problem and not self.layout.entry(part, whole):
            problem = "it is not a finished entry"
        if problem:
            self._broken[name] = etag
            self._in_s3.discard(name)
            self.report.warn(f"{self.place.key(name)} is not used: {problem}")
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        whole.rename(target)
        return True

    def _pack(self, entry: Entry, packed: Path) -> bool:
        """Pack an entry. Returns False if the entry is deleted or written again in the meantime."""
        unread = entry.name in self.at_start and not _was_read(entry.result)
        try:
            before = entry.signature
            pack(entry, packed)
            if not before or entry.signature != before:
                return False
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UnstorableError(str(error)) from None
        if unread:
            _mark_unread(entry.result)
        return True

    def _store(self, entry: Entry, packed: Path, check: Callable[[], object]) -> None:
        replaced = self._broken.get(entry.name, "")
        url = f"{self.url}{entry.name}{SUFFIX}"
        stored = self._s3.add(url, packed, file_digest(packed), replaced=replaced, check=check)
        self.report.succeed(NOT_STORED)
        self._broken.pop(entry.name, None)
        if stored:
            self.report.stored += 1
            self.report.stored_bytes += packed.stat().st_size
        if stored or not replaced:
            self._in_s3.add(entry.name)


def _text(file: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _mark_unread(file: Path) -> None:
    """Set the access time to 1970: then even a `relatime` file system updates it when the file is read."""
    with contextlib.suppress(OSError):
        os.utime(file, ns=(0, file.stat().st_mtime_ns))


def _was_read(file: Path) -> bool:
    try:
        return file.stat().st_atime_ns != 0
    except OSError:
        return False


def records_access_times(folder: Path) -> bool:
    """Whether the file system records access times: not if it is mounted with `noatime`."""
    probe = folder / f".read-{os.getpid()}-{time.monotonic_ns()}"
    try:
        probe.write_bytes(b"1")
        _mark_unread(probe)
        probe.read_bytes()
        return _was_read(probe)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
