"""What an attempt made of its compile caches, by what a node has written. Nothing of it is believed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trainium_runtime.stored_record import one_line

_MOST_CACHES = 4
_MOST_TEXTS, _MOST_MISSED = 10, 50
_LONGEST_TEXT = 600


@dataclass(frozen=True, kw_only=True)
class CacheUse:
    """Of one stack's cache on one node. hits: entries that were used; None where the node cannot tell.

    misses: entries that were compiled, or failed to; reasons: how many of them by their likeliest reason; missed: each
    of the first of them with its own. recompiled: of the misses, those after the first step. renewed: entries whose
    age in S3 counts anew.
    """

    stack: str
    place: str = ""
    at_start: int = 0
    hits: int | None = None
    misses: int = 0
    compile_seconds: float = 0
    fetched: int = 0
    fetched_bytes: int = 0
    stored: int = 0
    stored_bytes: int = 0
    renewed: int = 0
    recompiled: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    missed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def cache_uses(raw: object) -> tuple[CacheUse, ...]:
    listed = cast("list[Any]", raw)[:_MOST_CACHES] if isinstance(raw, list) else []
    return tuple(_cache_use(cast("Mapping[str, Any]", one)) for one in listed if isinstance(one, Mapping))


def _cache_use(raw: Mapping[str, Any]) -> CacheUse:
    reasons = raw.get("reasons")
    known: Mapping[Any, Any] = cast("Mapping[Any, Any]", reasons) if isinstance(reasons, Mapping) else {}
    counts = ("at_start", "misses", "fetched", "fetched_bytes", "stored", "stored_bytes", "renewed", "recompiled")
    return CacheUse(
        stack=one_line(str(raw.get("stack")), 16),
        place=one_line(str(raw.get("place") or ""), _LONGEST_TEXT),
        hits=None if raw.get("hits") is None else _count(raw["hits"]),
        compile_seconds=_count(raw.get("compile_seconds")),
        reasons={one_line(str(name), 80): _count(many) for name, many in [*known.items()][:_MOST_TEXTS]},
        missed=_texts(raw.get("missed"), _MOST_MISSED),
        removed=_texts(raw.get("removed")),
        failed=_texts(raw.get("failed")),
        warnings=_texts(raw.get("warnings")),
        **{name: _count(raw.get(name)) for name in counts},
    )


def _count(raw: object) -> int:
    is_count = isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw < 1e15
    return round(cast(float, raw)) if is_count else 0


def _texts(raw: object, most: int = _MOST_TEXTS) -> tuple[str, ...]:
    listed = cast("list[Any]", raw)[:most] if isinstance(raw, list) else []
    return tuple(one_line(str(one), _LONGEST_TEXT) for one in listed)
