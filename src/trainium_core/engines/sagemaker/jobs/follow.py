"""Following a training job: what it writes and where it stands, until it is over."""

import time
from collections.abc import Callable, Iterator, Mapping

from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, LogLine, LogPage, TrainingJobs
from trainium_core.polling import polled
from trainium_runtime.errors import UnavailableError

POLL_SECONDS = 10
UNANSWERED = 6
"""How many times in a row AWS may not answer before following ends."""


class JobFollower:
    """Follows one job. It can be left and taken up again: `events` goes on where it was left."""

    def __init__(self, name: str, jobs: TrainingJobs, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.name = name
        self._jobs = jobs
        self._pause = pause
        self._position: Mapping[str, str] = {}
        self._shown: JobState | None = None

    def events(self) -> Iterator[JobState | LogLine]:
        """Each line that the job writes, and its state whenever that changes; the last one is of a job that is over.

        Lines are read once more after the end, since CloudWatch shows them late. Raises UnavailableError when AWS does
        not answer UNANSWERED times in a row, or knows no such job.
        """
        ended = False
        for state in self._states():
            yield from self._new_lines(to_the_end=ended)
            if ended:
                yield state
                return
            ended = state.is_over
            if not ended and _has_changed(state, self._shown):
                yield state
            self._shown = state
            self._pause(POLL_SECONDS)

    def _states(self) -> Iterator[JobState]:
        return polled(
            lambda: self._jobs.training_job(self.name),
            absent=f"SageMaker knows no training job {self.name} in this region",
            pause=self._pause,
            seconds=POLL_SECONDS,
            unanswered=UNANSWERED,
        )

    def _new_lines(self, *, to_the_end: bool) -> Iterator[LogLine]:
        """What cannot be read now is read with the next poll: the log does not decide how the job ends."""
        try:
            for page in log_pages(self.name, self._jobs, self._position):
                yield from page.lines
                self._position = page.position
                if not to_the_end:
                    return
        except UnavailableError:
            return


def log_pages(name: str, jobs: TrainingJobs, position: Mapping[str, str] | None = None) -> Iterator[LogPage]:
    """All that a job has written since a position, default since its beginning. Raises UnavailableError."""
    while True:
        page = jobs.job_log(name, position or {})
        yield page
        if page.is_last:
            return
        position = page.position


def _has_changed(state: JobState, shown: JobState | None) -> bool:
    return shown is None or (state.status, state.stage, state.message) != (shown.status, shown.stage, shown.message)
