"""Training jobs of SageMaker, and what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

_OVER = ("Completed", "Failed", "Stopped")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of a job, in AWS's word, such as Downloading. ended: None while it lasts."""

    name: str
    started: datetime
    ended: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class JobState:
    """Where a job stands. `status`, `stage` and `message` are AWS's words; `reason` why it failed, if it did.

    `billable_seconds` counts one instance; it is None until AWS returns it. `model_url`: what the job has made.
    `stages`: in the order of time, as far as AWS keeps them. `is_paid_for`: by a training plan.
    """

    name: str
    status: str
    stage: str
    message: str = ""
    reason: str = ""
    instance_type: str = ""
    instances: int = 0
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    billable_seconds: int | None = None
    model_url: str | None = None
    checkpoint_url: str | None = None
    warm_pool: str | None = None
    stages: Sequence[Stage] = ()
    on_spot: bool = False
    is_paid_for: bool = False

    @property
    def is_over(self) -> bool:
        return self.status in _OVER

    @property
    def is_completed(self) -> bool:
        return self.status == "Completed"


@dataclass(frozen=True, kw_only=True)
class JobSummary:
    """A job in a list."""

    name: str
    status: str
    created: datetime
    ended: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A line that a node of a job wrote; `node` is SageMaker's name for it, such as algo-1."""

    node: str
    time: datetime
    text: str


@dataclass(frozen=True, kw_only=True)
class LogPage:
    """Lines in the order of their time, and the position to go on from. `is_last`: whether there are no more now."""

    lines: Sequence[LogLine]
    position: Mapping[str, str] = field(default_factory=dict[str, str])
    is_last: bool = True


class TrainingJobs(Protocol):
    def training_job(self, name: str) -> JobState | None: ...

    def training_jobs(self, *, prefix: str = "", status: str = "", most: int) -> Sequence[JobSummary]:
        """The newest first."""
        ...

    def job_log(self, name: str, position: Mapping[str, str]) -> LogPage:
        """What has been written since the position of an earlier page; {} for the beginning.

        Raises UnavailableError when nothing could be read. A page that lacks what could not be read is not the last.
        """
        ...


class TrainingJobControl(TrainingJobs, Protocol):
    """Starts and stops jobs. Every method raises RequestRefusedError when AWS does not take the order."""

    def upload(self, folder_url: str, files: Mapping[str, bytes]) -> int:
        """Put files below an S3 URL, but for those that are there already; how many were put."""
        ...

    def start(self, request: Mapping[str, object]) -> None:
        """Raises JobUnknownError too, when AWS did not say whether it has started the job."""
        ...

    def stop(self, name: str) -> None: ...


class JobUnknownError(Exception):
    """AWS did not say whether it has started the job: it may run, and cost money."""
