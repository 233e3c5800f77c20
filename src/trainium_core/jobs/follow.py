"""Follows a job: its output and its state, until it ends."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from trainium_core.jobs.progress import JobState
from trainium_core.polling import poll_values
from trainium_runtime.errors import UnavailableError

POLL_SECONDS, RETRY_SECONDS = 1, 3
"""Seconds between polls, and after a failed poll."""
UNANSWERED = 20
"""Number of consecutive failed polls after which the follower gives up."""

_RANK = re.compile(r"^\[rank (\d+)\] ?")
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A line of a job's output.

    Attributes:
        attempt: Number of the attempt.
        rank: Rank of the process that printed it; None if it belongs to no single process.
        text: The line.
        node: The service's name for the node, if ranks are unknown.
    """

    attempt: int
    rank: int | None
    text: str
    node: str | None = None


class JobLog(Protocol):
    """The output of a job, read incrementally. Methods raise UnavailableError if a request fails or is denied."""

    def new_lines(self, state: JobState) -> Iterator[LogLine]:
        """The lines since the last call."""
        ...

    def last_line(self) -> Iterator[LogLine]:
        """The last line so far, if it does not end with a newline."""
        ...


class FollowedJobs(Protocol):
    """The requests that a follower sends. Methods raise UnavailableError if a request fails or is denied.

    Attributes:
        shortest_poll: Minimum seconds between two polls.
        log_delay: Seconds until a printed line can be read.
    """

    shortest_poll: float
    log_delay: float

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        """The state of a job; None if it does not exist.

        Args:
            job_id: ID of the job.
            every_node: Whether to read the progress of all nodes, or only of the first.
        """
        ...

    def open_log(
        self, job_id: str, *, rank: int | None = None, node: int | None = None, attempt: int | None = None
    ) -> JobLog:
        """Open the log of a job.

        Args:
            job_id: ID of the job.
            rank: The process whose lines to read. Default: rank 0, with tracebacks of other processes on its node.
            node: The node to read, with the lines of all its processes. Default: the node of the rank.
            attempt: The only attempt to read. Default: all.
        """
        ...


class JobFollower:
    """Follows one job. After an interruption, `events` continues where it stopped.

    Args:
        job_id: ID of the job.
        jobs: The jobs of the engine.
        rank: As for `FollowedJobs.open_log`.
        node: As for `FollowedJobs.open_log`.
        attempt: As for `FollowedJobs.open_log`.
        state: The state of the job, if it was just read. Default: it is read.
        pause: Waits for a number of seconds. Default: time.sleep.
    """

    def __init__(
        self,
        job_id: str,
        jobs: FollowedJobs,
        *,
        rank: int | None = None,
        node: int | None = None,
        attempt: int | None = None,
        state: JobState | None = None,
        pause: Callable[[float], None] | None = None,
    ) -> None:
        self.job_id = job_id
        self._jobs = jobs
        self._pause = pause or time.sleep
        self._known, self._shown = state, None
        self._log = jobs.open_log(job_id, rank=rank, node=node, attempt=attempt)

    def events(self, *, to_the_end: bool = True) -> Iterator[JobState | LogLine]:
        """Each line, and the job's state when it changes. The last event is a state.

        Args:
            to_the_end: Whether to continue until the job ends. If false, stop at the current end of the log.

        Raises:
            UnavailableError: UNANSWERED consecutive polls failed, or the job does not exist; if to_the_end is false,
                also if the log cannot be read.
        """
        for state in self._states():
            if state.is_over and self._shown is not None and self._jobs.log_delay:
                self._pause(self._jobs.log_delay)
            try:
                yield from self._log.new_lines(state)
            except UnavailableError:
                # The next poll reads the lines. The end of a job is reported even if its log cannot be read.
                if not to_the_end:
                    raise
            if state.is_over or not to_the_end:
                yield from self._log.last_line()
                yield state
                return
            if self._shown is None or _shown_state(state) != _shown_state(self._shown):
                yield state
            self._shown = state
            self._pause(max(POLL_SECONDS, self._jobs.shortest_poll))

    def _states(self) -> Iterator[JobState]:
        return poll_values(
            self._state,
            absent=f"there is no job {self.job_id}",
            pause=self._pause,
            seconds=max(RETRY_SECONDS, self._jobs.shortest_poll),
            unanswered=UNANSWERED,
        )

    def _state(self) -> JobState | None:
        known, self._known = self._known, None
        return known or self._jobs.state(self.job_id)


@dataclass(frozen=True, kw_only=True)
class LogChunk:
    """A part of the output of one node's processes in an attempt."""

    key: str
    node: int
    text: str


class ReadsChunks(Protocol):
    def log(self, job_id: str, attempt: int, node: int, *, after: str = "") -> Iterator[LogChunk]: ...


class ChunkedLog:
    """The log that nodes write in chunks, each line with its rank. Implements JobLog."""

    def __init__(
        self, job_id: str, jobs: ReadsChunks, *, rank: int | None, node: int | None, attempt: int | None
    ) -> None:
        self._job_id, self._jobs, self._rank, self._node, self._only_attempt = job_id, jobs, rank, node, attempt
        self._place = _Place(attempt=attempt or 1)

    def new_lines(self, state: JobState) -> Iterator[LogLine]:
        of_rank = 0 if self._rank is None else self._rank // state.job.processes_per_node
        node = of_rank if self._node is None else self._node
        last = self._only_attempt or len(state.attempts)
        while self._place.attempt <= last:
            for chunk in self._jobs.log(self._job_id, self._place.attempt, node, after=self._place.after):
                self._place.after = chunk.key
                *lines, self._place.rest = (self._place.rest + chunk.text).split("\n")
                for line in lines:
                    yield from self._wanted(line)
            if self._place.attempt == last:
                return
            yield from self.last_line()
            self._place = _Place(attempt=self._place.attempt + 1)

    def last_line(self) -> Iterator[LogLine]:
        rest, self._place.rest = self._place.rest, ""
        if rest:
            yield from self._wanted(rest)

    def _wanted(self, line: str) -> Iterator[LogLine]:
        match = _RANK.match(line)
        rank = int(match[1]) if match else None
        text = line[match.end() :] if match else line
        is_all = self._node is not None
        if (
            is_all
            or rank == (self._rank or 0)
            or (rank is None and self._rank is None)
            or self._is_in_traceback(rank, text)
        ):
            yield LogLine(attempt=self._place.attempt, rank=rank, text=text.rstrip("\r"))

    def _is_in_traceback(self, rank: int | None, text: str) -> bool:
        """Whether a line belongs to a traceback of another process, which ends with the line of the error."""
        if rank is None or self._rank is not None:
            return False
        if text.startswith(_TRACEBACK):
            self._place.in_traceback.add(rank)
        elif rank not in self._place.in_traceback:
            return False
        elif not text.startswith(" "):
            self._place.in_traceback.discard(rank)
        return True


@dataclass
class _Place:
    """The read position in the log of an attempt."""

    attempt: int
    after: str = ""
    rest: str = ""
    in_traceback: set[int] = field(default_factory=set[int])


def _shown_state(state: JobState) -> tuple[str, int, str]:
    return state.status, len(state.attempts), state.detail
