"""Verifying, repairing, cleaning and copying the entries of a compile cache."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeVar

from trainium_core.compile_cache.aws_cache import KEYS_PER_DELETE, AwsCompileCache, RequestLimitError
from trainium_core.compile_cache.contents import FINISHED, CachedEntry

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], object]
"""Takes how many are done, of how many."""

RELEASE_IN_NAME = ("xla",)
"""Stacks whose own names of entries hold the compiler's version."""

_THREADS = 16


@dataclass(frozen=True, kw_only=True)
class BrokenEntry:
    """An entry that nobody may use, and why."""

    entry: CachedEntry
    why: str


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was found of each entry.

    sound: their content has the checksum that they were stored with. without_checksum: finished ones that PyTorch/XLA
    wrote itself. in_work: not finished, and written not long ago. unknown: not looked at, since requests ran out or
    they went meanwhile.
    """

    sound: int = 0
    broken: tuple[BrokenEntry, ...] = ()
    without_checksum: int = 0
    in_work: int = 0
    unknown: int = 0


def verify(
    cache: AwsCompileCache, entries: Sequence[CachedEntry], *, now: datetime, on_progress: Progress
) -> Verification:
    """Read every packed entry once. Raises UnavailableError."""
    packed = [entry for entry in entries if entry.is_packed]
    direct = [entry for entry in entries if not entry.is_packed]
    dead = [BrokenEntry(entry=entry, why=entry.state) for entry in direct if entry.is_dead(now)]
    found = _each(packed, lambda entry: _why_broken(cache, entry), on_progress)
    broken = [BrokenEntry(entry=entry, why=why) for entry, why in zip(packed, found, strict=True) if why]
    finished = sum(1 for entry in direct if entry.state == FINISHED)
    return Verification(
        sound=found.count(""),
        broken=(*broken, *dead),
        without_checksum=finished,
        in_work=len(direct) - finished - len(dead),
        unknown=found.count(None),
    )


def repair(cache: AwsCompileCache, broken: Sequence[BrokenEntry], *, on_progress: Progress) -> int:
    """Delete them, but for those that a node has replaced meanwhile: how many went.

    Raises UnavailableError, RequestRefusedError and RequestLimitError.
    """
    deleted = 0
    for done, each in enumerate(broken):
        on_progress(done, len(broken))
        if all(cache.is_unchanged(one) for one in each.entry.objects):
            cache.delete(each.entry.keys_in_deletion_order)
            deleted += 1
    return deleted


def clean(cache: AwsCompileCache, entries: Sequence[CachedEntry], *, on_progress: Progress) -> None:
    """Delete entries, each in an order that leaves none of them half there for who reads it meanwhile.

    Raises RequestRefusedError and RequestLimitError.
    """
    first = [entry.keys_in_deletion_order[0] for entry in entries]
    rest = [*chain.from_iterable(entry.keys_in_deletion_order[1:] for entry in entries)]
    done = 0
    for keys in (first, rest):
        for start in range(0, len(keys), KEYS_PER_DELETE):
            part = keys[start : start + KEYS_PER_DELETE]
            cache.delete(part)
            done += len(part)
            on_progress(done, len(first) + len(rest))


@dataclass(frozen=True, kw_only=True)
class Copying:
    """What is to be copied. keys: of the source and of the target. there: entries that the target has already.

    left_out: entries that are not copied: not finished ones, and those whose own name holds another release.
    """

    keys: tuple[tuple[str, str], ...]
    entries: int
    size: int
    there: int
    left_out: int


def copying(entries: Iterable[CachedEntry], there: Iterable[CachedEntry], *, as_release: str | None = None) -> Copying:
    """as_release: that they are filed under in the target. Default: their own."""
    known = {entry.path for entry in there if entry.state == FINISHED}
    keys: list[tuple[str, str]] = []
    count = size = present = left_out = 0
    for entry in entries:
        new = _filed(entry, as_release)
        if new is None or entry.state != FINISHED:
            left_out += 1
        elif entry.path.replace(*new) in known:
            present += 1
        else:
            count, size = count + 1, size + entry.size
            keys += [(key, key.replace(*new)) for key in reversed(entry.keys_in_deletion_order)]
    return Copying(keys=tuple(keys), entries=count, size=size, there=present, left_out=left_out)


def copy(source: AwsCompileCache, target: AwsCompileCache, chosen: Copying, *, on_progress: Progress) -> None:
    """Copy by S3 itself. What says that an entry is finished comes last.

    Raises RequestRefusedError and RequestLimitError; run again, it goes on.
    """

    def one(keys: tuple[str, str]) -> bool:
        target.copy_from(source.location, *keys)
        return True

    marks = [keys for keys in chosen.keys if keys[0].endswith("model.done")]
    others = [keys for keys in chosen.keys if not keys[0].endswith("model.done")]
    done = 0
    for part in (others, marks):
        copied = _each(part, one, lambda now, _, before=done: on_progress(before + now, len(chosen.keys)))
        done += len(part)
        if None in copied:
            raise RequestLimitError(f"{copied.count(None)} objects are not copied: no more requests are allowed")


def _filed(entry: CachedEntry, as_release: str | None) -> tuple[str, str] | None:
    """What is replaced in its keys, by what; None where the stack's own names hold the release."""
    if as_release is None or as_release == entry.release:
        return ("", "")
    if entry.place is None or entry.place.stack in RELEASE_IN_NAME:
        return None
    return (entry.place.path, entry.place._replace(release=as_release).path)


def _why_broken(cache: AwsCompileCache, entry: CachedEntry) -> str | None:
    """Empty for a sound one; None when it went meanwhile."""
    found = cache.digests(entry.objects[0].key)
    if found is None:
        return None
    stored, actual = found
    if not stored:
        return "it was stored without a checksum"
    return "" if stored == actual else "its checksum is wrong"


def _each(items: Sequence[Item], work: Callable[[Item], Result | None], on_progress: Progress) -> list[Result | None]:
    """Some at a time, in their order; None for each that no request was left for."""
    found: list[Result | None] = []

    def attempt(item: Item) -> Result | None:
        try:
            return work(item)
        except RequestLimitError:
            return None

    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for result in pool.map(attempt, items):
                found.append(result)
                on_progress(len(found), len(items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found
