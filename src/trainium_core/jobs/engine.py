"""What runs jobs: the protocol that an engine implements for `trn run`, `jobs`, `logs`, `stop` and `cp`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from trainium_core.costs.estimate import Total
from trainium_core.jobs.follow import FollowedJobs
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_runtime.errors import RequestRefusedError


class NotStartedError(RequestRefusedError):
    """Why the engine cannot start a job now, in a sentence."""


class NoStackError(Exception):
    """The stack whose jobs were asked for is not deployed."""

    def __init__(self, stack: str, region: str) -> None:
        super().__init__(f"There is no stack {stack} in {region}: `trn deploy` creates it.")


class StartUnknownError(Exception):
    """AWS did not say whether it has started the job: it may run, and be billed."""


class PreparedJob(Protocol):
    """A job that an engine could start, with its packed source."""

    @property
    def job_id(self) -> str: ...

    @property
    def package(self) -> SourcePackage: ...

    @property
    def as_json(self) -> Mapping[str, Any]:
        """What the engine is sent."""
        ...

    @property
    def as_text(self) -> str:
        """The same for people: what would be executed, or sent."""
        ...

    def check(self) -> Sequence[str]:
        """Ask AWS whether it can be started now; what the user should know besides.

        Raises NotStartedError, JobError, NoStackError and UnavailableError.
        """
        ...

    def rows(self) -> Sequence[tuple[str, str]]:
        """What is about to be started, and what it costs."""
        ...

    def upload(self) -> None:
        """Upload what the job needs, and start nothing. Raises JobError and RequestRefusedError."""
        ...

    def submit(self) -> None:
        """Upload and start. Raises NotStartedError, StartUnknownError, JobError and RequestRefusedError."""
        ...


class JobEngine(FollowedJobs, Protocol):
    """The jobs of an engine. Reading raises UnavailableError, changing RequestRefusedError; both, NoStackError.

    instead: options and keys of a job file that it does not take, each with what to do instead. bills_jobs: whether a
    job is billed, and not the machines that it runs on; then `trn run` asks before it starts one.
    """

    key: str
    instead: Mapping[str, str]
    bills_jobs: bool

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> PreparedJob:
        """Raises JobError, and what reading raises."""
        ...

    def claims(self, job_id: str) -> bool:
        """Whether an id has the form of this engine's."""
        ...

    def job_ids(self) -> Sequence[str]:
        """Every job, in no order."""
        ...

    def newest(self, most: int) -> Sequence[JobState]:
        """The last jobs that were submitted, the newest first."""
        ...

    def last(self) -> JobState | None:
        """The job that was started last."""
        ...

    def stop(self, job_id: str) -> None:
        """Ask for the end of a job."""
        ...

    def files(self, job_id: str, folder: str) -> Mapping[str, int]:
        """What is below a folder of a job, such as outputs or checkpoints: sizes in bytes by path."""
        ...

    def download(self, job_id: str, name: str, path: str) -> None: ...

    def hourly(self, state: JobState) -> Total:
        """What the machines of a job cost by the hour."""
        ...


def check_keys(engine: JobEngine, given: Mapping[str, Any], shown: Mapping[str, str]) -> None:
    """Raise JobError for what was given and the engine does not take. shown: how a key is called where it was given."""
    problems = [*_not_taken(engine, given, shown)]
    if problems:
        raise JobError(problems)


def _not_taken(engine: JobEngine, given: Mapping[str, Any], shown: Mapping[str, str]) -> Iterator[JobProblem]:
    for key, fix in engine.instead.items():
        value = given.get(key)
        # Nothing, no and none ask for nothing.
        if value and value != "0":
            got = ", ".join(value) if key == "secrets" else value
            yield JobProblem(key=shown.get(key, key), got=got, allowed=f"nothing on {engine.key}", fix=fix)
