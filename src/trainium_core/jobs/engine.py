"""The protocol that an engine implements for commands about jobs, such as `trn run`, `trn logs` and `trn stop`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from trainium_core.costs.estimate import Total
from trainium_core.jobs.follow import FollowedJobs
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_runtime.errors import RequestRefusedError
from trainium_wire.node_record import StoredRecord


class NotStartedError(RequestRefusedError):
    """The engine cannot start a job now. The message is a sentence."""


class NoStackError(Exception):
    """The stack of the jobs is not deployed."""

    def __init__(self, stack: str, region: str) -> None:
        super().__init__(f"Stack {stack} does not exist in {region}: `trn deploy` creates it.")


class StartUnknownError(Exception):
    """AWS did not confirm that the job started. It may run and be billed."""


class PreparedJob(Protocol):
    """A job that is ready to start, with its packed source."""

    @property
    def job_id(self) -> str: ...

    @property
    def package(self) -> SourcePackage: ...

    @property
    def as_json(self) -> Mapping[str, Any]:
        """The request to the engine."""
        ...

    @property
    def as_text(self) -> str:
        """The request in readable form."""
        ...

    def find_checkpoint(self) -> Sequence[str]:
        """Find the checkpoint of a resumed job, before anything is started that is billed.

        Returns:
            Notes for the user.

        Raises:
            JobError: The job cannot be resumed.
            UnavailableError: A request failed or was denied.
            NoStackError: The stack is not deployed.
        """
        ...

    def started_after_waking(self, seconds: float) -> None:
        """Record in the job how long its cluster took to wake."""
        ...

    def check(self) -> Sequence[str]:
        """Check with AWS that the job can start now.

        Returns:
            Notes for the user.

        Raises:
            NotStartedError: The job cannot start now.
            JobError: The job cannot start as requested.
            NoStackError: The stack is not deployed.
            UnavailableError: A request failed or was denied.
        """
        ...

    def rows(self) -> Sequence[tuple[str, str]]:
        """A summary of the job and its cost."""
        ...

    def upload(self) -> Sequence[str]:
        """Upload the job's files without starting it.

        Returns:
            Notes for the user.

        Raises:
            JobError: A file cannot be read, or the job cannot be resumed.
            RequestRefusedError: AWS refused the upload.
            UnavailableError: A request failed or was denied.
            NoStackError: The stack is not deployed.
        """
        ...

    def submit(self) -> Sequence[str]:
        """Upload the job's files and start the job. Call `check` first.

        Returns:
            Notes for the user.

        Raises:
            NotStartedError: The job cannot start now.
            StartUnknownError: The job may have started.
            JobError: A file cannot be read.
            RequestRefusedError: AWS refused a request.
        """
        ...


class JobFiles(Protocol):
    """What the jobs of an engine have stored. Methods raise UnavailableError and NoStackError."""

    def job_ids(self) -> Sequence[str]:
        """The IDs of the jobs, in any order. Engines may omit old jobs."""
        ...

    def files(self, job_id: str, folder: str) -> Mapping[str, int]:
        """Sizes in bytes of the files below a folder of a job, such as outputs or checkpoints, by path."""
        ...

    def download(self, job_id: str, name: str, path: str) -> None:
        """Download a file of a job, by its path in the last answer of `files`, to a local path."""
        ...

    def node_records(self) -> Mapping[str, StoredRecord]:
        """The records of nodes, by instance ID. Empty if the engine verifies no nodes."""
        ...


@dataclass(frozen=True, kw_only=True)
class PriceBasis:
    """What the hourly cost of a job is.

    Attributes:
        purchase: The purchase option of the machines, such as on-demand; None if it is unknown.
        includes: What the cost includes.
        not_paid: Why it is not what is paid; empty if it is.
    """

    purchase: str | None
    includes: str
    not_paid: str = ""


class JobEngine(FollowedJobs, Protocol):
    """The jobs of an engine. Reads raise UnavailableError, changes RequestRefusedError, and both NoStackError.

    Attributes:
        key: The engine's key in `--on`.
        stack: The CloudFormation stack.
        instead: Unsupported options and keys of a job file, each with an alternative.
        bills_jobs: Whether the job is billed, not its machines. If so, `trn run` asks for confirmation.
    """

    key: str
    stack: str

    @property
    def store(self) -> JobFiles:
        """What the jobs have stored."""
        ...

    instead: Mapping[str, str]
    bills_jobs: bool

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> PreparedJob:
        """Prepare a job.

        Args:
            request: The request.
            package: The packed source.
            now: The time of the submission.

        Raises:
            JobError: The job cannot start as requested.
            UnavailableError: A request failed or was denied.
            NoStackError: The stack is not deployed.
        """
        ...

    def claims(self, job_id: str) -> bool:
        """Whether an ID has the form of this engine's job IDs."""
        ...

    def newest(self, most: int, *, brief: bool = False) -> Sequence[JobState]:
        """The most recent jobs, newest first.

        Args:
            most: Maximum number of jobs.
            brief: Jobs that have ended may have only their last attempt, without its start, which needs fewer requests.
        """
        ...

    def last(self) -> JobState | None:
        """The job that was submitted last; None if there is none."""
        ...

    def stop(self, job_id: str) -> None:
        """Request the end of a job.

        Raises:
            RequestRefusedError: AWS refused a request.
            UnavailableError: A request failed or was denied. The end may have been requested.
            NoStackError: The stack is not deployed.
        """
        ...

    def stop_restarts(self, job_id: str) -> None:
        """End what would start an ended job again. Raises as `stop`."""
        ...

    def hourly(self, state: JobState) -> Total:
        """The hourly cost of the machines that run the job."""
        ...

    def price_basis(self, state: JobState) -> PriceBasis:
        """What the hourly cost of the job is."""
        ...


def check_keys(engine: JobEngine, values: Mapping[str, Any], shown: Mapping[str, str]) -> None:
    """Refuse options that the engine does not support.

    Args:
        engine: The engine of the job.
        values: The values of options and keys of a job file.
        shown: Names of keys in messages, such as --nodes.

    Raises:
        JobError: A value requests something that the engine does not support.
    """
    problems: list[JobProblem] = []
    for key, fix in engine.instead.items():
        value = values.get(key)
        # An empty value, False and 0 request nothing.
        if value and value != "0":
            got = ", ".join(value) if key == "secrets" else value
            allowed = f"no value on {engine.key}"
            problems.append(JobProblem(key=shown.get(key, key), got=got, allowed=allowed, fix=fix))
    if problems:
        raise JobError(problems)
