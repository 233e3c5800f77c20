"""A run's usage of its compile cache: hits, misses, and the most likely reason for each miss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainium_wire.cache_place import Place, parse_key

from .cache import Cache, records_access_times
from .entries import Entries

MAX_REQUESTS = 5
"""Maximum number of requests to list the whole cache, to find reasons: up to 5,000 objects."""
MAX_NAMES = 10
"""Maximum number of removed entries, failed entries and warnings in the record."""
MAX_MISSED = 50
"""Maximum number of misses in the record by name, each with its reason."""
RECOMPILES = 5
"""A normal number of new entries after the first step, for example for an evaluation or a last, smaller batch. A higher
number causes a warning."""
MAX_WARNED = 3
"""Maximum number of these entries that the warning names."""
_DIFFERENCES = {
    "release": "other release",
    "world_size": "other number of processes",
    "flags": "other flags",
    "lnc": "other logical NeuronCore configuration",
    "generation": "other chip",
}
"""The reason for a miss by the field of `Place` that differs."""


class CacheUsage:
    """The usage of one cache. Entries of other places are listed at most once, after a miss.

    Args:
        cache: The cache, which has been filled.
        s3: The entries in S3.
        url: URL of the whole compile cache.

    Attributes:
        records_reads: Whether the file system of the cache records reads.
        has_first_step: Whether the job has printed its first step. The caller sets it.
    """

    def __init__(self, cache: Cache, s3: Entries, url: str) -> None:
        self._cache, self._s3, self._url = cache, s3, url.rstrip("/") + "/"
        self.records_reads = records_access_times(cache.root)
        self._others: dict[str, list[Place]] | None = None
        self._before_training: set[str] | None = None
        self._late: list[str] = []
        self._has_warned = False
        self._reasons: dict[str, str] = {}
        self.has_first_step = False

    def as_record(self, *, explain: bool = True) -> dict[str, Any]:
        """The usage for the job's record. `hits` is None if the file system does not record reads.

        Args:
            explain: Whether to look for the reasons for misses, also in S3.
        """
        cache, report = self._cache, self._cache.report
        read, new = cache.used()
        failures = cache.failures()
        if self.has_first_step:
            if self._before_training is None:
                self._before_training = {*new}
            self._late = sorted(new - self._before_training)
            if len(self._late) > RECOMPILES and not self._has_warned:
                self._has_warned = True
                report.warn(
                    f"more than {RECOMPILES} graphs were compiled after the first step: do shapes change from step to "
                    f"step? {', '.join(map(_bare, self._late[:MAX_WARNED]))}"
                )
        reasons: dict[str, int] = {}
        missed: list[str] = []
        for name in [*sorted(new), *failures]:
            why = self._reason_once(name) if explain else "not looked for"
            reasons[why] = reasons.get(why, 0) + 1
            missed.append(f"{_bare(name)}: {why}")
        return {
            "stack": cache.place.stack,
            "place": cache.place.path,
            "at_start": len(cache.at_start),
            "hits": len(read) if self.records_reads else None,
            "misses": len(new) + len(failures),
            "compile_seconds": round(cache.compile_seconds(new), 1),
            "reasons": reasons,
            "missed": missed[:MAX_MISSED],
            "fetched": report.fetched,
            "fetched_bytes": report.fetched_bytes,
            "stored": report.stored,
            "stored_bytes": report.stored_bytes,
            "renewed": report.renewed,
            "recompiled": len(self._late),
            "removed": report.removed[:MAX_NAMES],
            "failed": [f"{name}: {why}" for name, why in sorted(failures.items())][:MAX_NAMES],
            "warnings": report.warnings[:MAX_NAMES],
        }

    def _reason_once(self, name: str) -> str:
        if name not in self._reasons:
            self._reasons[name] = self._reason(name)
        return self._reasons[name]

    def _reason(self, name: str) -> str:
        cache = self._cache
        if name in cache.in_s3_at_start:
            return "not read from S3"
        if cache.place.stack == "xla" and _graph(name) in {_graph(each) for each in self._known()}:
            return "other flags"
        places = self._other_places().get(_bare(name), [])
        if places:
            return " and ".join(min((_differences(place, cache.place) for place in places), key=len))
        return "other shapes, code or paths" if any(self._known()) else "first time"

    def _known(self) -> Iterable[str]:
        return {*self._cache.in_s3_at_start, *self._cache.at_start}

    def _other_places(self) -> dict[str, list[Place]]:
        if self._others is None:
            self._others = {}
            try:
                listed = self._s3.entries(self._url, MAX_REQUESTS)
            except OSError:
                return {}
            for each in listed:
                found = parse_key(each.key)
                if found and found.place.stack == self._cache.place.stack and found.place != self._cache.place:
                    self._others.setdefault(_bare(found.name), []).append(found.place)
        return self._others


def _bare(name: str) -> str:
    """The name without folders: libneuronxla's folder is named after the version of the compiler."""
    return name.rpartition("/")[2]


def _graph(name: str) -> str:
    return _bare(name).partition("+")[0]


def _differences(place: Place, other: Place) -> list[str]:
    return [text for field, text in _DIFFERENCES.items() if getattr(place, field) != getattr(other, field)]
