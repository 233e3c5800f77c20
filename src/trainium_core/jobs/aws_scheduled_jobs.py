"""The common part of the engines (Slurm, EKS) whose scheduler starts the nodes of a job, with its records in S3."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

from trainium_core.jobs.aws_stored_jobs import PreparedStoredJob, StoredJobs
from trainium_core.jobs.engine import StartUnknownError
from trainium_core.jobs.progress import JobState
from trainium_core.plan import Plan
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.job import FAILED, STOPPED

_ASK_SECONDS = 15
"""Minimum time between requests to the scheduler."""
_SILENT_SECONDS = 180
"""Nodes report every 15 seconds. After this time without a report, the scheduler is asked whether the job runs."""


class NoAnswerError(UnavailableError):
    """A request to a scheduler may have been sent and carried out. Its result is unknown."""


class ScheduledJob(Protocol):
    """A job as its scheduler describes it."""

    @property
    def stage(self) -> str:
        """What the job waits for, for display; empty if it runs or has ended."""
        ...

    @property
    def detail(self) -> str:
        """Why it waits."""
        ...

    @property
    def end(self) -> tuple[str, str] | None:
        """Result and reason of a job whose nodes did not report its end; None before the end."""
        ...


JobOfScheduler = TypeVar("JobOfScheduler", bound=ScheduledJob)


class ScheduledJobs(StoredJobs, Generic[JobOfScheduler]):
    """The common part of trainium_core.jobs.engine.JobEngine.

    Attributes:
        scheduler: Name of the scheduler, in messages.
        absent_detail: What can be done about a job that the scheduler does not have, and may get.
    """

    scheduler: str
    absent_detail = ""

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        super().__init__(plan, stack, clients)
        self._asked_at: float | None = None
        self._listed: Mapping[str, JobOfScheduler] = {}
        self._seen: set[str] = set()

    def list_jobs(self) -> Mapping[str, JobOfScheduler]:
        """The jobs that the scheduler has, by ID. Raises UnavailableError and RequestRefusedError."""
        raise NotImplementedError

    def cancel(self, job: JobOfScheduler) -> None:
        """Have the scheduler end a job. Raises UnavailableError and RequestRefusedError."""
        raise NotImplementedError

    def may_be_submitted(self, state: JobState) -> bool:
        """Whether a job that the scheduler does not have may still be submitted to it."""
        raise NotImplementedError

    def last(self) -> JobState | None:
        return next(iter(self.newest(1)), None)

    def newest(self, most: int, *, brief: bool = False) -> Sequence[JobState]:
        return [self.current(state) for state in self.store.newest(most, brief=brief)]

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        state = self.store.state(job_id, every_node=every_node)
        return None if state is None else self.current(state)

    def stop(self, job_id: str) -> None:
        """Ask the nodes to end the job. If none run, cancel it in the scheduler and close it.

        Raises:
            RequestRefusedError: AWS or the scheduler refused a request.
            UnavailableError: A request failed or was denied. The nodes may already have been asked.
            NoStackError: The stack is not deployed.
        """
        self.store.stop(job_id)
        self._asked_at = None
        job = self._ask().get(job_id)
        if job is not None and job.stage:
            self.cancel(job)
        elif job is not None or not self._is_silent(job_id):
            return
        self.store.close(job_id, "trn stop", STOPPED)

    def current(self, state: JobState) -> JobState:
        """The state of a job, from the scheduler if its nodes do not report.

        Records the end of a job that the scheduler has ended, or no longer has.
        """
        return replace(self._current(state), has_own_nodes=True)

    def _current(self, state: JobState) -> JobState:
        if state.is_over or not _is_silent(state):
            return state
        job_id = state.job.id
        try:
            job = self._ask().get(job_id)
        except (UnavailableError, RequestRefusedError) as error:
            return replace(state, detail=f"{self.scheduler} could not be read: {error}")
        if job is None and job_id not in self._seen and self.may_be_submitted(state):
            return replace(state, stage=f"not in {self.scheduler}", detail=self.absent_detail)
        if job is not None and job.end is None:
            return replace(state, stage=job.stage, detail=job.detail)
        if not self.store.has_ended(job_id):
            absent = FAILED, f"{self.scheduler} no longer has this job, and its nodes did not report how it ended"
            result, reason = absent if job is None or job.end is None else job.end
            self.store.close(job_id, reason, result)
        return self.store.state(job_id) or state

    def _ask(self) -> Mapping[str, JobOfScheduler]:
        if self._asked_at is None or time.monotonic() - self._asked_at > _ASK_SECONDS:
            self._listed = self.list_jobs()
            self._seen.update(self._listed)
            self._asked_at = time.monotonic()
        return self._listed

    def _is_silent(self, job_id: str) -> bool:
        state = self.store.state(job_id)
        return state is not None and _is_silent(state)


def _is_silent(state: JobState) -> bool:
    """Whether no attempt is running, or no node has reported for _SILENT_SECONDS."""
    if not state.attempts or state.attempts[-1].outcome is not None:
        return True
    times = [node.at for node in state.attempts[-1].nodes if node.at is not None]
    last = max(times, default=None)
    return last is None or (datetime.now(UTC) - last).total_seconds() > _SILENT_SECONDS


@dataclass
class PreparedScheduledJob(PreparedStoredJob):
    """The common part of trainium_core.jobs.engine.PreparedJob."""

    def start(self) -> Sequence[str]:
        """Have the scheduler start the stored job.

        Returns:
            Notes for the user.

        Raises:
            NoAnswerError: The job may have started.
            RequestRefusedError: The scheduler refused the job.
            UnavailableError: The scheduler could not be asked.
        """
        raise NotImplementedError

    def submit(self) -> Sequence[str]:
        self.store.add(self.job, self.package.archive, self.uploads)
        try:
            return self.start()
        except NoAnswerError as error:
            raise StartUnknownError(str(error)) from error
        except (UnavailableError, RequestRefusedError) as error:
            self.store.close(self.job.id, str(error))
            raise RequestRefusedError(str(error)) from error
