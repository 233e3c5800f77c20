"""The attempts of a job in S3: what the next one continues from, and what decides whether there is one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from trainium_wire.formats import moment
from trainium_wire.job import NODE_LOST, Job, Outcome, checkpoint_names, resumable_checkpoints
from trainium_wire.job_keys import JobKeys, job_keys
from trainium_wire.restarts import EndedAttempt, has_progressed

from .objects import Object, Objects

NEIGHBOURS = 2
"""How many nodes each node of a job tests: the next ones in the order of ranks."""

READY_SECONDS = 5
"""How often a node repeats that it is ready for the next attempt."""
READY_VALID_SECONDS = 15
"""Older statements are those of nodes that have been lost since."""


class Resumption(NamedTuple):
    """What an attempt continues from.

    Attributes:
        checkpoint: The name of the checkpoint; None without one.
        job: The job that saved it.
        saved_at: When its manifest was written, by S3's clock; None without a checkpoint.
    """

    checkpoint: str | None
    job: str
    saved_at: str | None = None


def resumption(s3: Objects, spec: Job, attempts: int, jobs_url: str) -> Resumption:
    """The checkpoint from which the next attempt continues, and the job that saved it.

    Args:
        s3: Requests to S3.
        spec: The job.
        attempts: Number of earlier attempts.
        jobs_url: URL of the folder of all jobs.

    Returns:
        The checkpoint. Without one, `job` is `spec.resume_from`, or this job if that is not set.

    Raises:
        OSError: S3 does not answer or refuses.
    """
    checkpoints_url = spec.checkpoints_folder(jobs_url)
    own = _newest_checkpoint(s3, spec.id, checkpoints_url) if attempts else Resumption(None, spec.id)
    if own.checkpoint or not spec.resume_from:
        return own
    return _newest_checkpoint(s3, spec.resume_from, checkpoints_url)


def _newest_checkpoint(s3: Objects, job: str, checkpoints_url: str) -> Resumption:
    """The newest checkpoint with a manifest, which is written last."""
    written = {
        each.key.rpartition("/")[2]: each.modified for each in s3.list(job_keys(job, checkpoints_url).checkpoints)
    }
    names = resumable_checkpoints(checkpoint_names(written))
    return Resumption(names[-1], job, written[f"{names[-1]}.json"]) if names else Resumption(None, job)


def ended_attempts(
    s3: Objects,
    spec: Job,
    history: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    following: Resumption,
    jobs_url: str,
) -> list[EndedAttempt]:
    """What decides on a restart.

    Args:
        s3: Requests to S3.
        spec: The job.
        history: Start and end of each attempt.
        following: What the next attempt would continue from.
        jobs_url: URL of the folder of all jobs.

    Raises:
        OSError: S3 does not answer or refuses.
    """
    keys: JobKeys = job_keys(spec.id, jobs_url)
    next_start = {
        "resume_from": following.checkpoint,
        "resume_job": following.job,
        "resume_saved_at": following.saved_at,
    }
    starts = [*(start for start, _ in history), next_start]
    attempts: list[EndedAttempt] = []
    for number, (start, end) in enumerate(history, 1):
        outcome = Outcome.from_record(end)
        # Only the loss of a node depends on it.
        joined = outcome.result != NODE_LOST or len(s3.list(keys.attempt(number).nodes)) >= spec.nodes
        attempts.append(EndedAttempt(outcome, joined, has_progressed(outcome.result, start, starts[number])))
    return attempts


def neighbours(rank: int, count: int) -> list[int]:
    """The ranks of the nodes that a node of a job tests."""
    return [(rank + step) % count for step in range(1, min(NEIGHBOURS, count - 1) + 1)]


def unready(found: Collection[Object], nodes: Collection[str]) -> list[str]:
    """The nodes that have not said recently that they are ready.

    Args:
        found: What the nodes have written: objects with the name of the instance.
        nodes: Instance IDs.
    """
    written = {each.key.rpartition("/")[2].removesuffix(".json"): moment(f"{each.modified[:19]}Z") for each in found}
    newest = max((at for at in written.values() if at), default=None)

    def is_ready(node: str) -> bool:
        at = written.get(node)
        return bool(at and newest and newest - at <= timedelta(seconds=READY_VALID_SECONDS))

    return [node for node in nodes if not is_ready(node)]
