"""The jobs of a Slurm cluster on AWS PCS: submitted on its login node, with their records in S3."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total, estimate
from trainium_core.engines.pcs.aws_login_node import AwsLoginNode
from trainium_core.engines.pcs.batch_script import batch_script
from trainium_core.engines.pcs.costs import job_items
from trainium_core.engines.pcs.slurm_queue import (
    SlurmJob,
    cancel_command,
    list_command,
    may_have_submitted,
    parse_jobs,
    priority_notes,
    submit_command,
)
from trainium_core.engines.pcs.slurm_settings import queues, with_node_image
from trainium_core.jobs.aws_scheduled_jobs import NoAnswerError, PreparedScheduledJob, ScheduledJobs
from trainium_core.jobs.aws_stored_jobs import TRAINING_JOBS_ONLY
from trainium_core.jobs.engine import PriceBasis
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.prices.price import ON_DEMAND, SPOT
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.formats import moment

_NEW_SECONDS = 300
"""For this time after the submission, Slurm may not have the job yet."""


class SlurmJobs(ScheduledJobs[SlurmJob]):
    """The jobs of a plan's PCS stack. Implements trainium_core.jobs.engine.JobEngine."""

    key, scheduler = "pcs", "Slurm"
    instead: Mapping[str, str] = {
        **TRAINING_JOBS_ONLY,
        "warm_pool_minutes": "remove it: trn:pcs_idle_minutes sets how long idle nodes stay",
        "upload": "remove it: a Slurm job is uploaded when it is submitted",
        "wake": "remove it: Slurm starts nodes for a job",
        "recovery": "remove it: `trn bench` does not terminate Slurm nodes",
    }

    @property
    def login(self) -> AwsLoginNode:
        """The login node. Raises UnavailableError if the plan has none."""
        if not self.plan.pcs.login:
            raise UnavailableError(f"{self.plan.cluster_name} has no login node: deploy with trn:pcs_login=on")
        return AwsLoginNode(AwsService(self.plan.region, clients=self.clients), self.plan.cluster_name)

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> "PreparedSlurmJob":
        known = [queue.name for queue in queues(self.plan)]
        if request.queue not in (None, *known):
            fix = f"name one of them, or deploy with {request.queue} in trn:pcs_queues"
            raise JobError([JobProblem(key="queue", got=request.queue, allowed=", ".join(known), fix=fix)])
        plan, script = with_node_image(self.plan), package.script or None
        job = new_job(plan, request, script=script, now=now, source_sha256=package.digest)
        return PreparedSlurmJob(
            plan=self.plan,
            clients=self.clients,
            store=self.store,
            jobs=self,
            job=job,
            package=package,
            uploads=request.uploads,
            queue=request.queue or known[0],
            priority=request.priority,
        )

    def hourly(self, state: JobState) -> Total:
        prices = AwsPrices(self.plan.region, clients=self.clients)
        nodes = state.job.nodes
        return estimate(self.plan, aws=prices, items=lambda plan: job_items(plan, nodes)).running_hour

    def price_basis(self, state: JobState) -> PriceBasis:  # noqa: ARG002
        return PriceBasis(purchase=self.plan.capacity, includes="the job's nodes and their volumes, without AWS PCS")

    def list_jobs(self) -> Mapping[str, SlurmJob]:
        return parse_jobs(self.login.run(list_command()))

    def cancel(self, job: SlurmJob) -> None:
        self.login.run(cancel_command(job.number))

    def may_be_submitted(self, state: JobState) -> bool:
        """Jobs are stored in S3 first. Slurm forgets jobs that ended."""
        at = moment(state.job.submitted_at)
        return at is not None and (datetime.now(UTC) - at).total_seconds() < _NEW_SECONDS


_SIMULATED = "No code will run: requests do not go to AWS, and an emulator starts no Slurm nodes for jobs."


@dataclass
class PreparedSlurmJob(PreparedScheduledJob):
    """Implements trainium_core.jobs.engine.PreparedJob. Call `check` before `submit`."""

    jobs: SlurmJobs
    queue: str
    priority: int = 0

    @property
    def as_json(self) -> Mapping[str, Any]:
        return {**asdict(self.job), "queue": self.queue, "priority": self.priority, "batch_script": self.as_text}

    @property
    def as_text(self) -> str:
        return batch_script(self.plan, self.job, queue=self.queue)

    def check(self) -> Sequence[str]:
        self.jobs.login.find()
        self.find_submitter()
        simulated = () if self.jobs.login.is_on_aws else (_SIMULATED,)
        return [*simulated, *self.left_out_notes(), *self.find_checkpoint()]

    def rows(self) -> Sequence[tuple[str, str]]:
        hour = self.jobs.hourly(JobState(job=self.job, attempts=(), outcome=None))
        plan = self.plan
        billed = (
            f"from their start until {plan.pcs.idle_minutes} idle minutes after the job"
            if plan.capacity in (ON_DEMAND, SPOT) and plan.pcs.min_nodes < plan.nodes
            else "which are paid for whether jobs use them or not"
        )
        return self.rows_with(
            ("queue", f"{self.queue}, priority {self.priority}" if self.priority else self.queue),
            ("cost", f"{hour} per hour of its nodes, {billed}"),
        )

    def start(self) -> Sequence[str]:
        command = submit_command(self.as_text, name=self.job.id, priority=self.priority)
        try:
            return priority_notes(self.jobs.login.run(command), self.priority)
        except (UnavailableError, RequestRefusedError) as error:
            reason = f"sbatch on the login node: {error}"
            if isinstance(error, NoAnswerError) or may_have_submitted(str(error)):
                raise NoAnswerError(reason) from error
            raise RequestRefusedError(reason) from error
