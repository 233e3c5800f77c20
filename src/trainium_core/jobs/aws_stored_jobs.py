"""The common part of the engines (cluster, Slurm) whose jobs are in the bucket of a cluster's node records."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from trainium_core.aws.identity import AwsIdentities
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.engine import NoStackError
from trainium_core.jobs.follow import JobLog
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.source_files import input_files, left_out_text
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.plan import Plan
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError
from trainium_wire.job import Job

_REMOVE = "remove it, or add --on sagemaker"
TRAINING_JOBS_ONLY = {"training_plan": _REMOVE, "spot_wait_minutes": _REMOVE, "input_mode": _REMOVE}

_NOTHING_TO_RESUME = "none: no recent job of the cluster can be resumed"
_PROFILE_NOTE = (
    "slows the profiled ranks, and takes memory and disk space; a device profile takes about 5 GB of a trn2's device "
    "memory. Do not use this job for timing"
)
"""Source: Neuron Explorer's guide in SDK 2.33."""


def deployed_store(plan: Plan, stack: str, clients: Clients) -> JobStore:
    """The jobs of a plan's cluster. Their bucket is in the record of its stack.

    To find it raises NoStackError if the stack is not deployed, or UnavailableError.
    """

    def find() -> str:
        fleet = AwsFleets(plan.region, clients=clients).fleet_record(stack)
        if fleet is None:
            raise NoStackError(stack, plan.region)
        return fleet.bucket

    return JobStore(plan.region, find, clients=clients)


class StoredJobs:
    """The common part of trainium_core.jobs.engine.JobEngine."""

    bills_jobs = False
    shortest_poll, log_delay = 0.0, 0.0

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        self.plan, self.stack, self.clients = plan, stack, clients
        self.store = deployed_store(plan, stack, clients)

    def claims(self, job_id: str) -> bool:
        return "--" not in job_id

    def stop_restarts(self, job_id: str) -> None:
        """Nodes do not start an ended job."""

    def open_log(
        self, job_id: str, *, rank: int | None = None, node: int | None = None, attempt: int | None = None
    ) -> JobLog:
        return self.store.open_log(job_id, rank=rank, node=node, attempt=attempt)


@dataclass
class PreparedStoredJob:
    """The common part of trainium_core.jobs.engine.PreparedJob.

    Attributes:
        plan: The plan of the cluster.
        clients: The clients of AWS's services.
        store: The jobs of the cluster.
        job: The job.
        package: The packed source.
        uploads: Local inputs by name.
    """

    plan: Plan
    clients: Clients
    store: JobStore
    job: Job
    package: SourcePackage
    uploads: Mapping[str, Path]

    @property
    def job_id(self) -> str:
        return self.job.id

    def upload(self) -> Sequence[str]:
        raise NotImplementedError("check_keys refuses `upload`")

    def started_after_waking(self, seconds: float) -> None:
        self.job = replace(self.job, waking_seconds=seconds)

    def find_submitter(self) -> None:
        """Record in the job who submits it, unless STS cannot be read."""
        with suppress(UnavailableError):
            identity = AwsIdentities(self.plan.region, clients=self.clients).identity()
            self.job = replace(self.job, submitted_by=identity.name)

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
        owner, checkpoint = _resumed(self.job, earlier, self.store)
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
            ("nodes", f"{job.nodes} x {self.plan.instance_type}{processes}"),
            ("retries", _retries_text(job)),
            ("profile", _PROFILE_NOTE if job.profile else ""),
            *more,
        ]
        return [row for row in rows if row[1]]


def _resumed(job: Job, earlier: str, jobs: JobStore) -> tuple[str, str]:
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
