"""The hit rate of jobs in their compile caches."""

from collections.abc import Iterable
from dataclasses import dataclass

from trainium_core.jobs.progress import JobState


@dataclass(frozen=True, kw_only=True)
class CacheHits:
    """Cache hits of several jobs.

    Attributes:
        jobs: Number of jobs whose hits are known.
        hits: Number of hits.
        misses: Number of misses.
    """

    jobs: int
    hits: int
    misses: int

    @property
    def rate(self) -> float | None:
        """Hits divided by lookups; None without lookups."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else None


def cache_hits(states: Iterable[JobState]) -> CacheHits:
    """The sum over the first node of every attempt. Nodes that could not determine their hits do not count."""
    jobs = hits = misses = 0
    for state in states:
        first = [attempt.nodes[0] for attempt in state.attempts if attempt.nodes]
        uses = [use for node in first for use in node.caches if use.hits is not None]
        jobs += bool(uses)
        hits += sum(use.hits or 0 for use in uses)
        misses += sum(use.misses for use in uses)
    return CacheHits(jobs=jobs, hits=hits, misses=misses)
