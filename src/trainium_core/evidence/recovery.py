"""The time in which a job that lost a node was at work again."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trainium_core.evidence.metric import FEWEST_RUNS, MEASURED, Metric, unknown
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.record import restart_counts, seconds_between


@dataclass(frozen=True, kw_only=True)
class RecoveredJob:
    """A job that lost a node in its first attempt.

    Attributes:
        state: The state of the job after its end.
        gone_at: When the node was terminated.
        repeated: Seconds of the steps that the second attempt repeated; None if unknown.
    """

    state: JobState
    gone_at: datetime
    repeated: float | None


def recovery_metrics(job: RecoveredJob | None) -> Iterator[tuple[str, Metric]]:
    """The duration of the first restart of a job that lost a node, in total and by part, and the lost work."""
    restart = next(iter(restart_counts(job.state)), None) if job else None
    if job is None or restart is None:
        yield "recovery_seconds", unknown("s", "no job that lost a node was measured")
        return
    outcome = job.state.attempts[0].outcome
    detected = seconds_between(job.gone_at, outcome.at) if outcome else None
    parts = {"detected": detected, "waited": restart.waited, "begun": restart.begun}
    known = [seconds for seconds in parts.values() if seconds is not None]
    durations = {
        "recovery_seconds": sum(known) if len(known) == len(parts) else None,
        "recovery_lost_seconds": job.repeated,
        **{f"recovery_{part}_seconds": seconds for part, seconds in parts.items()},
    }
    for name, seconds in durations.items():
        if seconds is None:
            why = "the job's record does not have this time"
            if name == "recovery_lost_seconds":
                why = "an attempt has no progress lines with seconds=, so the repeated work is unknown"
            yield name, unknown("s", why, n=1)
        else:
            why = f"too few for an interval: 1 of at least {FEWEST_RUNS} restarts"
            yield name, Metric(value=seconds, unit="s", n=1, origin=MEASURED, why_null=why)
