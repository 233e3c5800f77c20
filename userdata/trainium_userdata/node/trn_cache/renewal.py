"""Entries of a place that is used are renewed before a rule of the bucket deletes them, by copies onto themselves.

The whole place is renewed, and at once: what is in use does not expire, and a place that is no longer used, such as
that of an old release, expires as a whole and not by halves.
"""

from __future__ import annotations

import concurrent.futures

from .cache import THREADS, Cache
from .entries import Entries, Kept, Stored

DUE = 0.5
"""Part of its lifetime after which the oldest entry has its place renewed."""
FRESH = 0.1
"""Part of the lifetime up to which an entry is left as it is meanwhile."""
LIFETIME_SECONDS = 90 * 86400.0
"""Where no rule deletes anything: renewed all the same, as `trn cache clean` takes the age for what it is."""
YOUNG_SECONDS = 43200.0
"""A rule counts in days: nothing is due so early."""
MOST, MOST_AT_ONCE = 1000, 100
"""Entries that one job renews, and that one call does: each takes two requests."""
MOST_GONE = 5
"""Entries that may have expired since they were listed, before no more is looked for."""


class Renewal:
    """Of one cache. records_reads: whether its file system notes reads; else whatever is there counts as used."""

    def __init__(self, cache: Cache, s3: Entries, *, records_reads: bool) -> None:
        self._cache, self._s3, self._tells_reading = cache, s3, records_reads
        self._due: list[Stored] | None = None

    def step(self) -> None:
        """Renew some of what is due, once anything of the place was used. Raises OSError when S3 refuses: then no more
        is tried."""
        if self._due is None:
            if not (self._cache.was_used if self._tells_reading else self._cache.at_start):
                return
            self._due = []
            self._due = self._found_due()[:MOST]
        part, self._due = self._due[:MOST_AT_ONCE], self._due[MOST_AT_ONCE:]
        if not part:
            return
        try:
            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                self._cache.report.renewed += sum(pool.map(self._renew, part))
        except OSError:
            self._due = []
            raise

    def _found_due(self) -> list[Stored]:
        """The oldest first."""
        known = sorted((each for each in self._cache.intact_in_s3() if each.modified), key=lambda each: each.modified)
        if not known or self._s3.now - known[0].modified < YOUNG_SECONDS:
            return []
        for oldest in known[:MOST_GONE]:
            kept = self._s3.head(self._cache.url + oldest.key)
            if kept:
                lifetime = _lifetime(oldest, kept)
                if lifetime is None or self._s3.now - oldest.modified < lifetime * DUE:
                    return []
                return [each for each in known if self._s3.now - each.modified > lifetime * FRESH]
        return []

    def _renew(self, each: Stored) -> bool:
        url = self._cache.url + each.key
        kept = self._s3.head(url)
        # Without a checksum no node uses it.
        return bool(kept and kept.digest and self._s3.renew(url, kept))


def _lifetime(each: Stored, kept: Kept) -> float | None:
    """In seconds; None for what is not to be renewed."""
    if kept.expires is not None:
        return max(kept.expires - each.modified, 0.0)
    return None if kept.is_versioned else LIFETIME_SECONDS
