"""The attempts of a job in S3, where a scheduler starts its nodes. The first node begins them and ends the job."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainium_wire.job import (
    FAILED,
    INTERRUPTED,
    NODE_LOST,
    RESULTS_LOST,
    STOPPED,
    SUCCEEDED,
    TIME_LIMIT,
    Job,
    Outcome,
    end_record,
    job_end_record,
    start_record,
)
from trainium_wire.job_keys import AttemptKeys, job_keys
from trainium_wire.restarts import restart_pause
from trn_node.job_attempts import Resumption, ended_attempts, resumption
from trn_node.notices import timestamp
from trn_node.objects import Objects

from .store import Store

STOP_SECONDS = 2.5
"""Seconds between checks whether a job was stopped during the pause before an attempt."""
DONE = ("ended", FAILED, SUCCEEDED, RESULTS_LOST)
"""Final states of nodes."""


class OverError(Exception):
    """The job has ended. Its program exits with `exit_code`, or with 1 if that is 0, because it runs nothing."""

    def __init__(self, end: Mapping[str, Any]) -> None:
        super().__init__(f"{end.get('result')} {end.get('reason') or ''}".rstrip())
        self.is_stopped = end.get("result") == STOPPED
        self.exit_code = task_exit_code(end)


class BegunElsewhereError(Exception):
    """An attempt of the job was begun by another submission, or by another start of this one."""


class ScheduledAttempts:
    """The attempts of a job.

    Args:
        job_id: ID of the job.
        s3: Requests to S3.
        url: S3 URL of the folder of all jobs.
        scheduler: Name of the scheduler, in messages.
        submission: What the scheduler calls this submission of the job. It stays the same when the scheduler starts
            the job again.

    Raises:
        OSError: S3 does not answer or refuses.
        LookupError: S3 does not have the job.
        ValueError: The job is invalid.
    """

    def __init__(self, job_id: str, s3: Objects, url: str, *, scheduler: str, submission: str) -> None:
        self.url, self._scheduler, self._submission = url, scheduler, submission
        self.store, self.keys, self._s3 = Store(s3, self.url), job_keys(job_id, ""), s3
        record = self.store.read(self.keys.job)
        if record is None:
            raise LookupError(f"{self.url} has no job {job_id}")
        self.spec = Job.from_json(json.dumps(record))

    def refuse_second_submission(self, starts: Sequence[Mapping[str, Any]]) -> None:
        """Raises BegunElsewhereError if another submission has begun the last of the attempts with these starts."""
        if starts and starts[-1].get("submission") != self._submission:
            twice = f"it was submitted twice to {self._scheduler}"
            raise BegunElsewhereError(f"attempt {len(starts)} of the job was begun elsewhere: {twice}")

    def begin(self, nodes: Mapping[str, str], membership: str = "") -> int:
        """Write the start of the next attempt, and return its number.

        An attempt without an end was cut off: the scheduler started the job again, for example after the loss of a
        node.

        Args:
            nodes: Addresses by instance ID, in the order of ranks.
            membership: What distinguishes these nodes from those of other starts of the scheduler.

        Raises:
            OverError: The job has ended.
            BegunElsewhereError: Another submission or start has begun the attempt.
            OSError: S3 does not answer or refuses.
            ValueError: The number of nodes is not that of the job.
        """
        if len(nodes) != self.spec.nodes:
            raise ValueError(f"{self._scheduler} has started {len(nodes)} nodes; the job needs {self.spec.nodes}")
        over = self.store.read(self.keys.end)
        if over is not None:
            raise OverError(over)
        starts = self.starts()
        self.refuse_second_submission(starts)
        if starts and self.store.read(self.attempt(len(starts)).end) is None:
            reason = f"{self._scheduler} started the job again: it lost a node, or gave its nodes to another job"
            self.declare(len(starts), NODE_LOST, reason)
        left = self._seconds_left(starts)
        following = resumption(self._s3, self.spec, len(starts), self.url)
        end, pause = self._last_end(starts, following)
        final = end if end is not None and pause is None else self._final_end(left, following)
        if final is not None:
            self.close(len(starts), final)
            raise OverError(final)
        if end is not None and pause:
            # The job keeps its nodes, which have passed their tests.
            self._pause(timestamp(end["at"]) + pause, len(starts))
        number = len(starts) + 1
        start = start_record(
            number,
            nodes,
            membership=membership,
            submission=self._submission,
            checkpoint=following.checkpoint,
            checkpoint_job=following.job,
            checkpoint_saved_at=following.saved_at,
            seconds_left=self._seconds_left(starts),
        )
        key = self.attempt(number).start
        # Without the response to a request that S3 has served, its repetition finds the object.
        if not self.store.create(key, start) and self.store.read(key) != start:
            raise BegunElsewhereError(f"attempt {number} of the job was begun by another start of it")
        return number

    def _final_end(self, left: float | None, following: Resumption) -> dict[str, Any] | None:
        """The end of the job if no attempt can begin, otherwise None.

        Args:
            left: Remaining seconds of the time limit, if any.
            following: What the next attempt would continue from.
        """
        stopped = self.stopped()
        if stopped is not None:
            return stopped
        if left == 0:
            limit = self.spec.time_limit_seconds
            return end_record(TIME_LIMIT, f"the job reached its time limit of {limit} seconds", node=0)
        if following.job != self.spec.id and not following.checkpoint:
            return end_record(FAILED, f"job {following.job} has no complete checkpoint to continue from", node=0)
        return None

    def stopped(self) -> dict[str, Any] | None:
        """The end of the job if `trn stop` has ended it, otherwise None."""
        stop = self.store.read(self.keys.stop)
        return None if stop is None else end_record(STOPPED, str(stop.get("reason") or ""), node=0)

    def _pause(self, end: float, attempts: int) -> None:
        """Wait until a Unix time. Raises OverError if the job is stopped meanwhile."""
        while (left := end - time.time()) > 0:
            time.sleep(min(left, STOP_SECONDS))
            stopped = self.stopped()
            if stopped is not None:
                self.close(attempts, stopped)
                raise OverError(stopped)

    def attempt(self, number: int) -> AttemptKeys:
        return self.keys.attempt(number)

    def declare(self, number: int, result: str, reason: str) -> dict[str, Any]:
        """End an attempt, unless a node already has. Returns its end."""
        key = self.attempt(number).end
        self.store.create(key, end_record(result, reason))
        return self.store.read(key) or {}

    def count_done(self, number: int) -> int:
        """How many nodes have stored their results after the end of an attempt."""
        keys = self.attempt(number)
        found = (self.store.read(keys.node(rank)) or {} for rank in range(self.spec.nodes))
        return sum(each.get("state") in DONE and "results" in each.get("phases", {}) for each in found)

    def is_retried(self) -> bool:
        """Whether another attempt follows the last one, which has ended."""
        starts = self.starts()
        following = resumption(self._s3, self.spec, len(starts), self.url)
        return self._last_end(starts, following)[1] is not None

    def close(self, attempts: int, end: Mapping[str, Any]) -> None:
        """End the job, unless it has ended."""
        self.store.create(self.keys.end, job_end_record(end, attempts))

    def starts(self) -> list[dict[str, Any]]:
        """The starts of all attempts."""
        starts: list[dict[str, Any]] = []
        while (start := self.store.read(self.attempt(len(starts) + 1).start)) is not None:
            starts.append(start)
        return starts

    def _last_end(
        self, starts: list[dict[str, Any]], following: Resumption
    ) -> tuple[dict[str, Any] | None, int | None]:
        """The end of the last attempt, and the seconds until the next one; None without such an attempt.

        An attempt that a notice interrupted is retried like one that lost a node: the job gets other nodes.
        """
        if not starts:
            return None, None
        ends = [self.store.read(self.attempt(number).end) or {} for number in range(1, len(starts) + 1)]
        lost = [{**end, "result": NODE_LOST} if end.get("result") == INTERRUPTED else end for end in ends]
        attempts = ended_attempts(self._s3, self.spec, list(zip(starts, lost)), following, self.url)
        return ends[-1], restart_pause(self.spec, attempts)

    def _seconds_left(self, starts: list[dict[str, Any]]) -> float | None:
        limit = self.spec.time_limit_seconds
        return max(0.0, timestamp(starts[0]["at"]) + limit - time.time()) if limit and starts else limit


def task_exit_code(end: Mapping[str, Any]) -> int:
    """The exit code of the job: 0 for success, that of the user's script if the script failed, otherwise 1."""
    outcome = Outcome.from_record(end)
    if outcome.is_success:
        return 0
    code = outcome.exit_code if outcome.result == FAILED else None
    # As in shells: 128 plus the number of the signal that ended a program.
    return (128 - code if code < 0 else code) or 1 if code is not None else 1
