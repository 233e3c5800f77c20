"""The jobs of a Slurm cluster on AWS PCS: submitted on its login node, with their records in S3."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total, estimate
from trainium_core.engines.pcs.aws_login_node import AwsLoginNode, NoAnswerError
from trainium_core.engines.pcs.batch_script import batch_script
from trainium_core.engines.pcs.costs import job_items
from trainium_core.engines.pcs.slurm_queue import (
    SlurmJob,
    cancel_command,
    list_command,
    may_have_submitted,
    parse_jobs,
    priority_notes,
    slurm_end,
    submit_command,
)
from trainium_core.engines.pcs.slurm_settings import queues, with_node_image
from trainium_core.jobs.aws_stored_jobs import TRAINING_JOBS_ONLY, PreparedStoredJob, StoredJobs
from trainium_core.jobs.engine import StartUnknownError
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_core.prices.price import ON_DEMAND, SPOT
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.formats import moment
from trainium_wire.job import STOPPED

_ASK_SECONDS = 15
"""Minimum time between requests to Slurm."""
_SILENT_SECONDS = 180
"""Nodes report every 15 seconds. After this time without a report, Slurm is asked whether the job is still running."""
_NEW_SECONDS = 300
"""For this time after the submission, Slurm may not have the job yet."""


class SlurmJobs(StoredJobs):
    """The jobs of a plan's PCS stack. Implements trainium_core.jobs.engine.JobEngine."""

    key = "pcs"
    instead: Mapping[str, str] = {
        **TRAINING_JOBS_ONLY,
        "warm_pool_minutes": "remove it: trn:pcs_idle_minutes sets how long idle nodes stay",
        "upload": "remove it: a Slurm job is uploaded when it is submitted",
        "wake": "remove it: Slurm starts nodes for a job",
        "recovery": "remove it: `trn bench` does not terminate Slurm nodes",
    }

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        super().__init__(plan, stack, clients)
        self._asked_at: float | None = None
        self._slurm_jobs: Mapping[str, SlurmJob] = {}

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

    def last(self) -> JobState | None:
        return next(iter(self.newest(1)), None)

    def newest(self, most: int, *, brief: bool = False) -> Sequence[JobState]:
        return [self._current(state) for state in self.store.newest(most, brief=brief)]

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        state = self.store.state(job_id, every_node=every_node)
        return None if state is None else self._current(state)

    def stop(self, job_id: str) -> None:
        """Ask the nodes to end the job. If it waits in its queue or for its nodes, cancel it in Slurm and close it.

        Raises:
            RequestRefusedError: AWS or Slurm refused a request.
            UnavailableError: A request failed or was denied, or the login node did not answer. The nodes may
                already have been asked.
            NoStackError: The stack is not deployed.
        """
        self.store.stop(job_id)
        self._asked_at = None
        job = self._ask().get(job_id)
        if job is not None and job.stage:
            self.login.run(cancel_command(job.number))
            self.store.close(job_id, "trn stop", STOPPED)

    def hourly(self, state: JobState) -> Total:
        prices = AwsPrices(self.plan.region, clients=self.clients)
        nodes = state.job.nodes
        return estimate(self.plan, aws=prices, items=lambda plan: job_items(plan, nodes)).running_hour

    def _current(self, state: JobState) -> JobState:
        return replace(self._with_slurm(state), has_own_nodes=True)

    def _with_slurm(self, state: JobState) -> JobState:
        """The state of a job, from Slurm if its nodes do not report.

        Records the end of a job that Slurm has ended, or no longer has.
        """
        if state.is_over or not _is_silent(state):
            return state
        job_id = state.job.id
        try:
            job = self._ask().get(job_id)
        except (UnavailableError, RequestRefusedError) as error:
            return replace(state, detail=f"the Slurm queue could not be read: {error}")
        if job is not None and not job.has_ended:
            return replace(state, stage=job.stage, detail=job.detail)
        if job is None and _is_new(state):
            return state
        if not self.store.has_ended(job_id):
            result, reason = slurm_end(job)
            self.store.close(job_id, reason, result)
        return self.store.state(job_id) or state

    def _ask(self) -> Mapping[str, SlurmJob]:
        if self._asked_at is None or time.monotonic() - self._asked_at > _ASK_SECONDS:
            self._slurm_jobs = parse_jobs(self.login.run(list_command()))
            self._asked_at = time.monotonic()
        return self._slurm_jobs


_SIMULATED = "No code will run: requests do not go to AWS, and an emulator starts no Slurm nodes for jobs."


def _is_new(state: JobState) -> bool:
    """Whether Slurm may not have the job yet. Jobs are stored in S3 first."""
    at = moment(state.job.submitted_at)
    return at is not None and (datetime.now(UTC) - at).total_seconds() < _NEW_SECONDS


def _is_silent(state: JobState) -> bool:
    """Whether no attempt is running, or no node has reported for _SILENT_SECONDS."""
    if not state.attempts or state.attempts[-1].outcome is not None:
        return True
    times = [node.at for node in state.attempts[-1].nodes if node.at is not None]
    last = max(times, default=None)
    return last is None or (datetime.now(UTC) - last).total_seconds() > _SILENT_SECONDS


@dataclass
class PreparedSlurmJob(PreparedStoredJob):
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

    def submit(self) -> Sequence[str]:
        self.store.add(self.job, self.package.archive, self.uploads)
        try:
            command = submit_command(self.as_text, name=self.job.id, priority=self.priority)
            output = self.jobs.login.run(command)
        except NoAnswerError as error:
            raise StartUnknownError(str(error)) from error
        except (UnavailableError, RequestRefusedError) as error:
            reason = f"sbatch on the login node: {error}"
            if may_have_submitted(str(error)):
                raise StartUnknownError(reason) from error
            self.store.close(self.job.id, reason)
            raise RequestRefusedError(reason) from error
        return priority_notes(output, self.priority)
