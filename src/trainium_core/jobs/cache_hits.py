"""The hit rate of jobs in their compile caches."""

from collections.abc import Iterable
from dataclasses import dataclass

from trainium_core.jobs.progress import JobState


@dataclass(frozen=True, kw_only=True)
class CacheHits:
    """Hits of several jobs. jobs: the number of jobs that reported them."""

    jobs: int
    hits: int
    misses: int

    @property
    def rate(self) -> float | None:
        """Hits divided by lookups; None without lookups."""
        wanted = self.hits + self.misses
        return self.hits / wanted if wanted else None


def cache_hits(states: Iterable[JobState]) -> CacheHits:
    """Sum over the first node of every attempt. A node that could not determine its hits does not count."""
    jobs = hits = misses = 0
    for state in states:
        first = [attempt.nodes[0] for attempt in state.attempts if attempt.nodes]
        uses = [use for node in first for use in node.caches if use.hits is not None]
        jobs += bool(uses)
        hits += sum(use.hits or 0 for use in uses)
        misses += sum(use.misses for use in uses)
    return CacheHits(jobs=jobs, hits=hits, misses=misses)
