"""Compile caches as tables and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainium_cli.layout import Table
from trainium_cli.quantities import size
from trainium_cli.terminal import table
from trainium_core.compile_cache.contents import CachedEntry, ReleaseUse


def releases_table(found: Sequence[ReleaseUse]) -> Table:
    rows = [(use.release, f"{use.entries:,}", size(use.size), f"{use.newest:%Y-%m-%d}") for use in found]
    return table(["Release", "Entries", "Size", "Last stored"], rows, right=["Entries", "Size"])


def entries_table(entries: Sequence[CachedEntry]) -> Table:
    rows = [
        (entry.path, size(entry.size), f"{entry.modified:%Y-%m-%d %H:%MZ}", "" if entry.is_packed else entry.state)
        for entry in entries
    ]
    return table(["Entry", "Size", "Stored", "State"], rows, right=["Size"], wrapping=["Entry"])


def entry_as_json(entry: CachedEntry) -> Mapping[str, Any]:
    return {
        "path": entry.path,
        "name": entry.name,
        "place": entry.place._asdict() if entry.place else None,
        "release": entry.release,
        "packed": entry.is_packed,
        "state": entry.state,
        "bytes": entry.size,
        "stored": entry.modified.isoformat(),
    }


def entries_and_size(entries: Sequence[CachedEntry]) -> str:
    """Such as `43 entries, 509 MiB`."""
    many = "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"
    return f"{many}, {size(sum(entry.size for entry in entries))}"
