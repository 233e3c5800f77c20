"""The content of a compile cache in S3: entries packed by nodes, or written by PyTorch/XLA."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainium_wire.cache_place import DIRECT, RELEASE_PREFIX, Place, parse_key, parse_place

FINISHED = "finished"
_DONE = "model.done"
_RESULT = "model.neff"
_DIRECT = re.compile(r"(?:(?P<above>.+)/)?(?P<name>neuronxcc-(?P<compiler>[^/]+)/MODULE_[^/]+)/(?P<file>.+)")


@dataclass(frozen=True, kw_only=True)
class CachedObject:
    """An object in a cache.

    Attributes:
        key: Key below the cache's URL.
        size: Size in bytes.
        modified: Time of the last change.
    """

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True, kw_only=True)
class CachedEntry:
    """An entry of a cache.

    Attributes:
        name: The name that its software stack gave it.
        place: The inputs of the compilation in its key; None for an entry of PyTorch/XLA with a key without them.
        release: Compiler release.
        objects: One object for a packed entry; every file for an entry of PyTorch/XLA.
        is_packed: Whether a node packed it; False for an entry of PyTorch/XLA.
        state: `finished`, `failed`, `locked` or `incomplete`.
    """

    name: str
    place: Place | None
    release: str
    objects: tuple[CachedObject, ...]
    is_packed: bool
    state: str = FINISHED

    @property
    def size(self) -> int:
        return sum(each.size for each in self.objects)

    @property
    def modified(self) -> datetime:
        return max(each.modified for each in self.objects)

    @property
    def path(self) -> str:
        """The path below the cache's URL."""
        return self.objects[0].key if self.is_packed else self.objects[0].key.partition(self.name)[0] + self.name

    @property
    def keys_in_deletion_order(self) -> tuple[str, ...]:
        """The marker of a finished entry comes first, so that readers do not use a partial entry."""
        return tuple(sorted((each.key for each in self.objects), key=lambda key: not key.endswith(_DONE)))


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The content of a cache.

    Attributes:
        entries: The entries, sorted by path.
        others: Objects that belong to no entry. They are never changed.
    """

    entries: tuple[CachedEntry, ...]
    others: tuple[CachedObject, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReleaseUse:
    """The entries of one compiler release.

    Attributes:
        release: The release.
        entries: Number of entries.
        size: Size of all entries in bytes.
        newest: Time at which the last entry was stored or renewed.
    """

    release: str
    entries: int
    size: int
    newest: datetime


def cache_contents(objects: Iterable[CachedObject]) -> Contents:
    packed: list[CachedEntry] = []
    direct: dict[tuple[str, str], list[CachedObject]] = {}
    others: list[CachedObject] = []
    for each in objects:
        if key := parse_key(each.key):
            release = key.place.release
            packed.append(CachedEntry(name=key.name, place=key.place, release=release, objects=(each,), is_packed=True))
        elif match := _DIRECT.fullmatch(each.key):
            direct.setdefault((match["above"] or "", match["name"]), []).append(each)
        else:
            others.append(each)
    entries = [*packed, *(_direct(above, name, files) for (above, name), files in direct.items())]
    return Contents(entries=tuple(sorted(entries, key=lambda entry: entry.path)), others=tuple(others))


def releases(entries: Iterable[CachedEntry]) -> tuple[ReleaseUse, ...]:
    """The entries of each release in numbers, the most recently written release first."""
    by_release: dict[str, list[CachedEntry]] = {}
    for entry in entries:
        by_release.setdefault(entry.release, []).append(entry)
    uses = [
        ReleaseUse(
            release=release,
            entries=len(of_release),
            size=sum(entry.size for entry in of_release),
            newest=max(entry.modified for entry in of_release),
        )
        for release, of_release in by_release.items()
    ]
    return tuple(sorted(uses, key=lambda use: (use.newest, use.release), reverse=True))


def to_clean(
    entries: Sequence[CachedEntry],
    *,
    now: datetime,
    of_releases: Sequence[str] = (),
    older_than: timedelta | None = None,
    keep_releases: int | None = None,
    unused_for: timedelta | None = None,
) -> tuple[CachedEntry, ...]:
    """The entries that match all conditions.

    Args:
        entries: All entries.
        now: The current time.
        of_releases: Only entries of these releases; all releases if empty.
        older_than: Only entries stored or renewed longer ago.
        keep_releases: Exclude entries of this many releases, the most recently written ones.
        unused_for: Only packed entries in places where every packed entry is older.
    """
    newest: dict[Place | None, datetime] = {}
    for entry in (each for each in entries if each.is_packed):
        newest[entry.place] = max(entry.modified, newest.get(entry.place, entry.modified))
    kept = {use.release for use in releases(entries)[:keep_releases]} if keep_releases is not None else set[str]()
    return tuple(
        entry
        for entry in entries
        if entry.release not in kept
        and (not of_releases or entry.release in of_releases)
        and (older_than is None or now - entry.modified > older_than)
        and (unused_for is None or (entry.is_packed and now - newest[entry.place] > unused_for))
    )


def _direct(above: str, name: str, files: list[CachedObject]) -> CachedEntry:
    sizes = {each.key.rpartition("/")[2]: each.size for each in files}
    if _DONE in sizes and sizes.get(_RESULT):
        state = FINISHED
    elif any(file.endswith(".lock") for file in sizes):
        state = "locked"
    elif any(file.endswith(".log") for file in sizes):
        state = "failed"
    else:
        state = "incomplete"
    place = parse_place(above.removeprefix(f"{DIRECT}/"))
    compiler = name.partition("/")[0].removeprefix("neuronxcc-").replace("+", "-")
    release = place.release if place else f"{RELEASE_PREFIX}{compiler}"
    return CachedEntry(name=name, place=place, release=release, objects=tuple(files), is_packed=False, state=state)
