"""The common part of the engines (cluster, Slurm) whose jobs are in the bucket of a cluster's node records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.jobs.follow import JobLog
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.source_files import input_files, left_out_text
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import Clients
from trainium_runtime.node_store import NodeStore
from trainium_wire.formats import time_text
from trainium_wire.job import Job
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.node_record import StoredRecord

_SAGEMAKER_ONLY = "remove it, or add --on sagemaker"
SAGEMAKER_ONLY = {"training_plan": _SAGEMAKER_ONLY, "spot_wait_minutes": _SAGEMAKER_ONLY, "input_mode": _SAGEMAKER_ONLY}

_NOTHING_TO_RESUME = "none: no recent job of the cluster can be resumed"
_PROFILE_NOTE = (
    "slows the profiled ranks, and takes memory and disk space; a device profile takes about 5 GB of a trn2's device "
    "memory. Do not use this job for timing"
)
"""Source: Neuron Explorer's guide in SDK 2.33."""


class BucketJobs(ABC):
    """The part of trainium_core.jobs.engine.JobEngine that uses the bucket."""

    bills_jobs = False
    shortest_poll, log_delay = AwsJobs.shortest_poll, AwsJobs.log_delay

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        self.plan, self.stack, self.clients = plan, stack, clients

    @cached_property
    def bucket_jobs(self) -> AwsJobs:
        """The jobs in the bucket of the cluster's node records.

        Raises:
            UnavailableError: A request failed or was denied.
            NoStackError: The stack is not deployed.
        """
        return self._find_bucket()

    @abstractmethod
    def _find_bucket(self) -> AwsJobs: ...

    def claims(self, job_id: str) -> bool:
        return "--" not in job_id

    def job_ids(self) -> Sequence[str]:
        return self.bucket_jobs.job_ids()

    def newest(self, most: int) -> Sequence[JobState]:
        return self.bucket_jobs.newest(most)

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        return self.bucket_jobs.state(job_id, every_node=every_node)

    def stop(self, job_id: str) -> None:
        self.bucket_jobs.stop(job_id, "trn stop", time_text(datetime.now(UTC)))

    def open_log(
        self, job_id: str, *, rank: int | None = None, node: int | None = None, attempt: int | None = None
    ) -> JobLog:
        return self.bucket_jobs.open_log(job_id, rank=rank, node=node, attempt=attempt)

    def files(self, job_id: str, folder: str) -> Mapping[str, int]:
        return self.bucket_jobs.files(job_id, folder)

    def download(self, job_id: str, name: str, path: str) -> None:
        self.bucket_jobs.download(job_id, name, path)

    def node_records(self) -> Mapping[str, StoredRecord]:
        jobs = self.bucket_jobs
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {jobs.bucket}"):
            return NodeStore(jobs.client("s3"), jobs.bucket, RECORDS_PREFIX).records()


Jobs = TypeVar("Jobs", bound=BucketJobs)


@dataclass
class PreparedBucketJob(Generic[Jobs]):
    """The common part of trainium_core.jobs.engine.PreparedJob.

    Attributes:
        jobs: The jobs of the engine.
        job: The job.
        package: The packed source.
        uploads: Local inputs by name.
    """

    jobs: Jobs
    job: Job
    package: SourcePackage
    uploads: Mapping[str, Path]

    @property
    def job_id(self) -> str:
        return self.job.id

    def upload(self) -> None:
        raise NotImplementedError("check_keys refuses `upload`")

    def started_after_waking(self, seconds: float) -> None:
        self.job = replace(self.job, waking_seconds=seconds)

    def find_checkpoint(self) -> Sequence[str]:
        """Find the checkpoint that the job resumes from, and set `resume_from` to the job that saved it.

        If the resumed job saved no checkpoint, the job that it resumed is searched, and so on.

        Returns:
            Notes for the user.

        Raises:
            JobError: There is no checkpoint, or it was saved by another number of processes or nodes.
            UnavailableError: A request failed or was denied.
            NoStackError: The stack is not deployed.
        """
        earlier = self.job.resume_from
        if earlier is None:
            return []
        owner, checkpoint = _resumed(self.job, earlier, self.jobs.bucket_jobs)
        self.job = replace(self.job, resume_from=owner)
        if owner == earlier:
            return []
        return [f"{earlier} saved no checkpoint: {self.job_id} continues from {checkpoint} of {owner}."]

    def left_out_notes(self) -> Iterator[str]:
        """Notes on the files of local inputs that are not uploaded.

        Raises:
            JobError: A file cannot be read.
        """
        for path in self.uploads.values():
            if path.is_dir() and (left_out := input_files(path).left_out):
                yield f"Left out of {path}: {left_out_text(left_out)}"

    def rows_with(self, *more: tuple[str, str]) -> Sequence[tuple[str, str]]:
        """A summary of the job, with `more` rows of its engine. Rows without text are omitted."""
        job = self.job
        processes = f", {job.processes_per_node} processes each" if job.has_ranks else ""
        rows = [
            ("resumes", job.resume_from or ""),
            ("nodes", f"{job.nodes} x {self.jobs.plan.instance_type}{processes}"),
            ("retries", _retries_text(job)),
            ("profile", _PROFILE_NOTE if job.profile else ""),
            *more,
        ]
        return [row for row in rows if row[1]]


def _resumed(job: Job, earlier: str, jobs: AwsJobs) -> tuple[str, str]:
    """The job whose checkpoint a job continues from, and that checkpoint."""
    owner, checkpoints = jobs.resumable(earlier, job.checkpoints)
    if not checkpoints:
        known = jobs.job_ids()
        problem = "has no complete checkpoint" if earlier in known else "is not a job of this cluster"
        where = f" in {job.checkpoints}" if job.checkpoints else ""
        no_checkpoint = JobProblem(
            key="--resume",
            got=earlier,
            allowed=", ".join(jobs.newest_with_checkpoints(job.checkpoints)) or _NOTHING_TO_RESUME,
            fix=f"{earlier} {problem}{where}: remove --resume, or name another job",
        )
        raise JobError([no_checkpoint])
    difference = jobs.checkpoint_difference(owner, checkpoints[-1], job)
    if difference:
        of = f"{job.world_size} processes" if job.world_size and "processes" in difference else f"{job.nodes} nodes"
        saved = difference.partition(",")[0]
        problem = JobProblem(
            key="--resume",
            got=f"{owner}, whose checkpoint {checkpoints[-1]} {saved}",
            allowed=f"a checkpoint of {of}, as many as this job has",
            fix=f"run the job with {' '.join(saved.split()[-2:])}, or convert the checkpoint",
        )
        raise JobError([problem])
    return owner, checkpoints[-1]


def _retries_text(job: Job) -> str:
    causes = ["the loss of a node"]
    if job.retry_on_hang and job.hang_seconds:
        causes.append("a hang")
    if job.retry_on_exit_codes:
        causes.append(f"exit code {' or '.join(map(str, job.retry_on_exit_codes))}")
    return f"up to {job.retries} without progress, after {' or '.join(causes)}" if job.retries else "none"
