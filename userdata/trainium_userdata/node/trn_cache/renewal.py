"""Renews the entries of a used place before a lifecycle rule deletes them, by copying them onto themselves.

The use of any entry renews its whole place, except fresh entries: a used place does not expire, and an unused place,
such as that of an old release, does.
"""

from __future__ import annotations

import concurrent.futures

from .cache import THREADS, Cache
from .entries import Entries, ObjectState, Stored

DUE = 0.5
"""Fraction of the lifetime after which the oldest entry triggers the renewal of its place."""
FRESH = 0.1
"""Entries younger than this fraction of the lifetime are not renewed."""
LIFETIME_SECONDS = 90 * 86400.0
"""Assumed lifetime without a lifecycle rule: entries are renewed anyway, because `trn cache clean` uses their age."""
YOUNG_SECONDS = 43200.0
"""No entry is due at a lower age: the shortest lifetime of a lifecycle rule is a day."""
MAX_PER_ATTEMPT, MAX_AT_ONCE = 1000, 100
"""Maximum number of renewed entries per attempt of a job and per call, because each entry takes two requests."""
MAX_GONE = 5
"""Nothing is renewed if this many of the oldest entries were deleted after they had been listed."""


class Renewal:
    """The renewal of one cache.

    Args:
        cache: The cache, which has been filled.
        s3: The entries in S3.
        records_reads: Whether the file system of the cache records reads; otherwise every entry counts as used.
    """

    def __init__(self, cache: Cache, s3: Entries, *, records_reads: bool) -> None:
        self._cache, self._s3, self._records_reads = cache, s3, records_reads
        self._due: list[Stored] | None = None

    def step(self) -> None:
        """Renew up to MAX_AT_ONCE of the due entries, once any entry of the place has been used.

        Raises:
            OSError: S3 refuses a request or does not answer. Later calls do nothing.
        """
        if self._due is None:
            if not (self._cache.was_used if self._records_reads else self._cache.at_start):
                return
            self._due = []
            self._due = self._found_due()[:MAX_PER_ATTEMPT]
        part, self._due = self._due[:MAX_AT_ONCE], self._due[MAX_AT_ONCE:]
        if not part:
            return
        try:
            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                self._cache.report.renewed += sum(pool.map(self._renew, part))
        except OSError:
            self._due = []
            raise

    def _found_due(self) -> list[Stored]:
        """The due entries, the oldest first."""
        known = sorted((each for each in self._cache.intact_in_s3() if each.modified), key=lambda each: each.modified)
        if not known or self._s3.now - known[0].modified < YOUNG_SECONDS:
            return []
        for oldest in known[:MAX_GONE]:
            current = self._s3.head(self._cache.url + oldest.key)
            if current:
                lifetime = _lifetime(oldest, current)
                if lifetime is None or self._s3.now - oldest.modified < lifetime * DUE:
                    return []
                return [each for each in known if self._s3.now - each.modified > lifetime * FRESH]
        return []

    def _renew(self, entry: Stored) -> bool:
        url = self._cache.url + entry.key
        current = self._s3.head(url)
        # Nodes ignore entries without a checksum.
        return bool(current and current.digest and self._s3.renew(url, current))


def _lifetime(entry: Stored, current: ObjectState) -> float | None:
    """The lifetime in seconds; None if entries are not renewed.

    In a versioned bucket without a rule, each renewal would add a version that S3 retains.
    """
    if current.expires is not None:
        return max(current.expires - entry.modified, 0.0)
    return None if current.is_versioned else LIFETIME_SECONDS
