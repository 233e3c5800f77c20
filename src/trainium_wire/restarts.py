"""Whether and when another attempt of a job follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trainium_wire.job import NODE_LOST, Job, Outcome

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 10, 300


class EndedAttempt(NamedTuple):
    """An attempt that has ended.

    Attributes:
        outcome: Its end.
        joined: Whether every node had begun its part.
        progressed: Whether it made progress (`has_progressed`).
    """

    outcome: Outcome
    joined: bool
    progressed: bool


def restart_pause(job: Job, attempts: Sequence[EndedAttempt]) -> int | None:
    """Seconds between the last attempt and the next; None if no other attempt follows.

    `job.retries` limits the restarts since the last progress. A node that was lost before all nodes had begun does not
    count. Without progress, the pause doubles with each restart after the first.

    Args:
        job: The job.
        attempts: All attempts so far.
    """
    if not job.may_restart(attempts[-1].outcome):
        return None
    first = max((number for number, attempt in enumerate(attempts) if attempt.progressed), default=0)
    since = attempts[first:]
    if sum(attempt.joined or attempt.outcome.result != NODE_LOST for attempt in since) > job.retries:
        return None
    if len(since) == 1:
        return 0
    return min(FIRST_PAUSE_SECONDS * 2 ** (len(since) - 2), LONGEST_PAUSE_SECONDS)


def has_progressed(result: str, start: Mapping[str, Any], following: Mapping[str, Any]) -> bool:
    """Whether an attempt has completed a new checkpoint.

    A checkpoint with the name of the one that the attempt continued from counts only if the attempt lost a node: some
    scripts save as soon as they have resumed, and one that then fails each time would otherwise never end.

    Args:
        result: The result of the attempt.
        start: The start record of the attempt.
        following: The start record of the next attempt, or at least its checkpoint.
    """
    if following.get("resume_from") is None:
        return False
    before, after = ([each.get(f"resume_{name}") for name in ("job", "from")] for each in (start, following))
    return before != after or (result == NODE_LOST and start.get("resume_saved_at") != following.get("resume_saved_at"))
