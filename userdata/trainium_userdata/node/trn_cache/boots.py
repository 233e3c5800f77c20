"""Checksums of a folder's entries, by which a node detects incomplete entries after a power failure.

Writes are not synced to the disk, because that would delay every job. A power failure may therefore leave an incomplete
entry under its final name, so after a boot each entry is compared with its checksum.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from .layouts import Entry
from .packing import digest_of

CHECKSUMS = ".checksums"
"""File next to the entries: a line for the boot, and one for each entry."""
BOOT = Path("/proc/sys/kernel/random/boot_id")
THREADS = 4
_LINE = re.compile(r"([0-9a-f]{64}) (.+)")


def this_boot() -> str:
    """An ID that changes at each boot; empty if unknown. Then every start counts as a boot."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""


class Checksums:
    """The checksums of one folder. Call `torn` first, then `add` and `keep` when entries are read and packed."""

    def __init__(self, root: Path, boot: str) -> None:
        self._file, self._boot = root / CHECKSUMS, boot
        self._of: dict[str, str] = {}
        self._changed = False
        self._lock = threading.Lock()

    def torn(self, entries: Mapping[str, Entry]) -> list[Entry]:
        """Entries that changed since before a boot, or whose earlier state is unknown."""
        boot, known = self._read()
        self._of = {name: digest for name, digest in known.items() if name in entries}
        self._changed = boot != self._boot
        if boot and boot == self._boot:
            return []
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            sound = pool.map(self._is_known, entries.values())
            changed = [entry for entry in entries.values() if not next(sound)]
        for entry in changed:
            self._of.pop(entry.name, None)
        return changed

    def add(self, name: str, digest: str) -> None:
        """That of an entry's packed content."""
        with self._lock:
            self._changed |= self._of.get(name) != digest
            self._of[name] = digest

    def keep(self) -> None:
        """Save them until the next start. If that fails, entries are removed after a boot."""
        with self._lock, contextlib.suppress(OSError):
            if self._changed:
                new = self._file.with_name(f"{CHECKSUMS}-new")
                lines = [self._boot, *(f"{digest} {name}" for name, digest in sorted(self._of.items()))]
                new.write_text("".join(f"{line}\n" for line in lines))
                new.replace(self._file)
                self._changed = False

    def _is_known(self, entry: Entry) -> bool:
        try:
            return digest_of(entry) == self._of.get(entry.name)
        except OSError:
            return False

    def _read(self) -> tuple[str, dict[str, str]]:
        """The boot, and the checksums saved then."""
        try:
            boot, *lines = self._file.read_text(errors="replace").split("\n")
        except OSError:
            return "", {}
        found = filter(None, map(_LINE.fullmatch, lines))
        return boot, {line[2]: line[1] for line in found}
