"""Following a job: what its first process prints, what goes wrong in others, and where it stands, until it is over."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from trainium_core.jobs.aws_jobs import LogChunk
from trainium_core.jobs.progress import ENDING, JobState
from trainium_core.polling import polled
from trainium_runtime.errors import UnavailableError

POLL_SECONDS, SOON_SECONDS, ENDING_SECONDS = 3, 1, 0.5
"""Between polls: usually, soon after something has changed, and while the job ends."""
SOON_POLLS = 60
UNANSWERED = 20
"""How many times in a row S3 may not answer before following ends."""

_RANK = re.compile(r"^\[rank (\d+)\] ?")
_TRACEBACK = "Traceback (most recent call last):"


class JobReader(Protocol):
    """What following asks of the jobs in S3."""

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None: ...

    def log(self, job_id: str, attempt: int, node: int, *, after: str = "") -> Iterator[LogChunk]: ...


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A line of a job. rank: of the process that printed it; None for one that is no single process's."""

    attempt: int
    rank: int | None
    text: str


@dataclass
class _Log:
    """How far the log of the first node of an attempt was read."""

    attempt: int
    after: str = ""
    rest: str = ""
    in_traceback: set[int] = field(default_factory=set[int])


class JobFollower:
    """Follows one job. It can be left and taken up again: `events` goes on where it was left.

    rank: the process whose lines are wanted. Default: the first, with the tracebacks of the others on its node.
    """

    def __init__(
        self,
        job_id: str,
        jobs: JobReader,
        *,
        rank: int | None = None,
        attempt: int | None = None,
        pause: Callable[[float], None] | None = None,
    ) -> None:
        self.job_id = job_id
        self._jobs, self._rank, self._only_attempt = jobs, rank, attempt
        self._pause = pause or time.sleep
        self._shown: JobState | None = None
        self._unchanged = 0
        self._log = _Log(attempt=attempt or 1)

    def events(self, *, to_the_end: bool = True) -> Iterator[JobState | LogLine]:
        """Each line, and the job's state whenever that changes; the last one is of a job that is over.

        to_the_end: False ends with what there is now.
        Raises UnavailableError when S3 does not answer UNANSWERED times in a row, or there is no such job.
        """
        for state in self._states():
            yield from self._new_lines(state)
            if state.is_over or not to_the_end:
                yield from self._last_line()
                yield state
                return
            self._unchanged += 1
            if self._shown is None or _shown_state(state) != _shown_state(self._shown):
                self._unchanged = 0
                yield state
            self._shown = state
            self._pause(self._seconds(state))

    def _seconds(self, state: JobState) -> float:
        """Until the next poll."""
        if state.status == ENDING:
            return ENDING_SECONDS
        return SOON_SECONDS if self._unchanged < SOON_POLLS else POLL_SECONDS

    def _states(self) -> Iterator[JobState]:
        return polled(
            lambda: self._jobs.state(self.job_id),
            absent=f"there is no job {self.job_id}",
            pause=self._pause,
            seconds=POLL_SECONDS,
            unanswered=UNANSWERED,
        )

    def _new_lines(self, state: JobState) -> Iterator[LogLine]:
        """What cannot be read now is read with the next poll: the log does not decide how the job ends."""
        node = 0 if self._rank is None else self._rank // state.job.processes_per_node
        last = self._only_attempt or len(state.attempts)
        while self._log.attempt <= last:
            try:
                for chunk in self._jobs.log(self.job_id, self._log.attempt, node, after=self._log.after):
                    self._log.after = chunk.key
                    *lines, self._log.rest = (self._log.rest + chunk.text).split("\n")
                    for line in lines:
                        yield from self._wanted(line)
            except UnavailableError:
                return
            if self._log.attempt == last:
                return
            yield from self._last_line()
            self._log = _Log(attempt=self._log.attempt + 1)

    def _last_line(self) -> Iterator[LogLine]:
        rest, self._log.rest = self._log.rest, ""
        if rest:
            yield from self._wanted(rest)

    def _wanted(self, line: str) -> Iterator[LogLine]:
        match = _RANK.match(line)
        rank = int(match[1]) if match else None
        text = line[match.end() :] if match else line
        if rank == (self._rank or 0) or (rank is None and self._rank is None) or self._is_of_traceback(rank, text):
            yield LogLine(attempt=self._log.attempt, rank=rank, text=text.rstrip("\r"))

    def _is_of_traceback(self, rank: int | None, text: str) -> bool:
        """Whether a line is part of a traceback of another process: up to the line that names the error."""
        if rank is None or self._rank is not None:
            return False
        if text.startswith(_TRACEBACK):
            self._log.in_traceback.add(rank)
        elif rank not in self._log.in_traceback:
            return False
        elif not text.startswith(" "):
            self._log.in_traceback.discard(rank)
        return True


def _shown_state(state: JobState) -> tuple[str, int]:
    return state.status, len(state.attempts)
