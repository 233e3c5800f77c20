"""One attempt, from the start of its tasks to its end. The batch script executes this program."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import IO, Any, TypeVar, cast

from trainium_wire.formats import time_text
from trainium_wire.job import NODE_LOST, STOPPED, Outcome
from trn_job.launch import Timing
from trn_job.preparation import patiently
from trn_job.scheduled_attempts import task_exit_code

from . import slurm
from .attempts import Attempts, parse_nodes

Work = TypeVar("Work")

LOOK_SECONDS, POLL_SECONDS = 0.2, 2.5
"""Seconds between checks of srun, and between reads of the end in S3."""
LOST_SECONDS = 60
"""How long the other nodes may store their results after a node was lost. srun waits for the lost node for minutes."""
NOTICE_SECONDS = 120
"""How long before its time limit Slurm signals the batch script (--signal=B:USR1@120)."""
REFUSED_SECONDS = 10
"""How long after a failed request to requeue or cancel the job Slurm may still end the script."""
REQUEUED_SECONDS = 300
"""How long the script waits for Slurm to end it. If it ended by itself, Slurm could consider the job completed."""


class Follower:
    """Runs one attempt. Used in a `with` block.

    The tasks print their addresses, and read the number of the attempt, which begins in the meantime: another step of
    Slurm for the addresses would take as long as this one.

    Args:
        srun: The command that runs the tasks.
    """

    _attempts: Attempts
    _number: int

    def __init__(self, srun: Sequence[str]) -> None:
        self._is_noticed = self._is_terminated = False
        self._lost_at: float | None = None
        self._only_lost_node_left = False
        self._polled_at = 0.0
        # Before the tasks start, because otherwise the signal would end this program.
        signal.signal(signal.SIGUSR1, self._notice)
        self._srun = subprocess.Popen(srun, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        """Without the number of an attempt, the tasks end. Slurm ends those that still run."""
        for pipe in (self._srun.stdin, self._srun.stdout):
            with contextlib.suppress(OSError):
                cast("IO[str]", pipe).close()

    def run(self, attempts: Attempts) -> int:
        """Begin the next attempt, and wait for its end; requeue or end the job.

        Returns:
            The exit code of the batch script.

        Raises:
            OverError: The job has ended.
            BegunElsewhereError: Another submission or start has begun the attempt.
            OSError: S3 does not answer or refuses.
            ValueError: The number of nodes is not that of the job.
        """
        self._attempts = attempts
        nodes, problems = parse_nodes("".join(self._addresses()))
        if problems and attempts.spec.retries and self._moves_elsewhere(problems):
            return 1
        self._number = attempts.begin(nodes)
        signal.signal(signal.SIGTERM, self._terminate)
        with contextlib.suppress(OSError):  # if srun has ended, the attempt ends, too
            print(self._number, file=self._srun.stdin, flush=True)
        code = self._wait()
        end = self._end(code)
        if Outcome.from_record(end).is_success or not self._persistently(self._attempts.is_retried):
            return self._close(end)
        if self._is_terminated:
            # Slurm itself decides whether it starts the job again.
            return 1
        print(f"trn-slurm: attempt {self._number}: {end['result']} {end['reason']}; requeuing the job", flush=True)
        error = slurm.requeue()
        self._await_termination(error)
        if error and not self._is_terminated:
            return self._close({**end, "reason": f"{end['reason']}; Slurm did not start the job again: {error}"})
        return 1

    def _addresses(self) -> Iterator[str]:
        """The lines of the tasks; fewer than nodes if srun ends."""
        return itertools.islice(cast("IO[str]", self._srun.stdout), int(os.environ["SLURM_JOB_NUM_NODES"]))

    def _moves_elsewhere(self, problems: Mapping[str, str]) -> bool:
        """Have Slurm start the job on other nodes, without an attempt on these. Returns whether Slurm accepted it.

        The watch or the epilog drains the nodes with problems, so that Slurm does not choose them again.
        """
        named = "; ".join(f"{instance}: {problem}" for instance, problem in problems.items())
        print(f"trn-slurm: requeuing the job, because a node ends or has failed: {named}", file=sys.stderr, flush=True)
        error = slurm.requeue()
        if error:
            print(f"trn-slurm: {error}", file=sys.stderr)
        self._await_termination(error)
        return not error

    def _close(self, end: dict[str, Any]) -> int:
        self._persistently(lambda: self._attempts.close(self._number, end))
        print(f"trn-slurm: {end['result']} {end['reason']}".rstrip(), flush=True)
        if end["result"] == STOPPED and not self._is_terminated:
            self._await_termination(slurm.cancel())
        return task_exit_code(end)

    def _await_termination(self, error: str) -> None:
        """Wait until Slurm ends this script, after a request that it may have carried out although it failed."""
        end_at = time.monotonic() + (REFUSED_SECONDS if error else REQUEUED_SECONDS)
        while not self._is_terminated and time.monotonic() < end_at:
            time.sleep(LOOK_SECONDS)

    def _wait(self) -> int | None:
        """The exit code of srun; None if it still waits for a lost node."""
        while True:
            code = self._srun.poll()
            if code is not None:
                return code
            if time.monotonic() - self._polled_at > POLL_SECONDS:
                self._polled_at = time.monotonic()
                try:
                    self._poll()
                except OSError as error:
                    print(f"trn-slurm: {error}", file=sys.stderr)
            if self._only_lost_node_left:
                return None
            time.sleep(LOOK_SECONDS)

    def _poll(self) -> None:
        keys = self._attempts.attempt(self._number)
        if self._is_noticed:
            at = datetime.now(timezone.utc) + timedelta(seconds=NOTICE_SECONDS)
            reason = "Slurm ends the job at its time limit"
            notice = {"node": 0, "kind": "time-limit", "reason": reason, "at": time_text(at)}
            self._attempts.store.create(keys.notice, notice)
            self._is_noticed = False
        if self._lost_at is None:
            end = self._attempts.store.read(keys.end)
            if end is not None and end.get("result") == NODE_LOST:
                self._lost_at = time.monotonic()
        if self._lost_at is not None:
            late = time.monotonic() - self._lost_at > LOST_SECONDS
            self._only_lost_node_left = late or self._attempts.count_done(self._number) >= self._attempts.spec.nodes - 1

    def _end(self, code: int | None) -> dict[str, Any]:
        """The end of the attempt. If no node has written one, a node counts as lost, or Slurm ended the job."""
        result, reason = NODE_LOST, f"a node's part of the job ended without a report; srun: exit code {code}"
        if self._is_terminated:
            result, reason = slurm.why_ended()
        return self._persistently(lambda: self._attempts.declare(self._number, result, reason))

    def _persistently(self, work: Callable[[], Work]) -> Work:
        return patiently(
            work, Timing().results, lambda text: print(f"trn-slurm: {text}", file=sys.stderr), lambda: False
        )

    def _notice(self, *_: object) -> None:
        self._is_noticed, self._polled_at = True, 0.0

    def _terminate(self, *_: object) -> None:
        self._is_terminated = True
