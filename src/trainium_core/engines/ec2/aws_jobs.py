"""The jobs of a cluster of EC2 instances, which the nodes read from S3."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total, estimate
from trainium_core.jobs.aws_job_store import CurrentJob
from trainium_core.jobs.aws_stored_jobs import TRAINING_JOBS_ONLY, PreparedStoredJob, StoredJobs
from trainium_core.jobs.engine import NoStackError, NotStartedError, PriceBasis
from trainium_core.jobs.job import new_job
from trainium_core.jobs.node_script import node_script
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import nodes_report

_SLURM_ONLY = "remove it, or add --on slurm: a cluster without Slurm runs one job at a time"


class ClusterJobs(StoredJobs):
    """The jobs of a plan's cluster. Implements trainium_core.jobs.engine.JobEngine."""

    key = "cluster"
    instead: Mapping[str, str] = {
        **TRAINING_JOBS_ONLY,
        "warm_pool_minutes": "remove it: the nodes stay until `trn sleep`",
        "upload": "remove it: a cluster's job is uploaded when it starts",
        "queue": _SLURM_ONLY,
        "priority": _SLURM_ONLY,
    }

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> "PreparedClusterJob":
        script = package.script or None
        job = new_job(self.plan, request, script=script, now=now, source_sha256=package.digest)
        return PreparedClusterJob(
            plan=self.plan,
            clients=self.clients,
            store=self.store,
            job=job,
            package=package,
            uploads=request.uploads,
            jobs=self,
        )

    def newest(self, most: int, *, brief: bool = False) -> Sequence[JobState]:
        return self.store.newest(most, brief=brief)

    def last(self) -> JobState | None:
        return self.store.last()

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        return self.store.state(job_id, every_node=every_node)

    def stop(self, job_id: str) -> None:
        self.store.stop(job_id)

    def hourly(self, state: JobState) -> Total:  # noqa: ARG002
        return self.running_hour()

    def price_basis(self, state: JobState) -> PriceBasis:  # noqa: ARG002
        return PriceBasis(purchase=self.plan.capacity, includes="all that the cluster is billed by the hour")

    def running_hour(self) -> Total:
        """The hourly cost of the cluster."""
        return estimate(self.plan, aws=AwsPrices(self.plan.region, clients=self.clients)).running_hour

    def ready(self) -> "ReadyCluster":
        """The cluster, if all its nodes are verified and no job is running.

        Raises:
            NotStartedError: A node is not verified, the cluster is asleep, or a job is running.
            UnavailableError: A request failed or was denied.
            NoStackError: The stack is not deployed.
        """
        account = AwsNodes(self.plan.region, clients=self.clients)
        jobs = self.store
        deployed = account.nodes(self.stack)
        if deployed is None:
            raise NoStackError(self.stack, self.plan.region)
        report = nodes_report(deployed, replacements=self.plan.node.replacements if self.plan.node.recovery else 0)
        if report.asleep:
            name = self.plan.cluster_name
            raise NotStartedError(
                f"{name} is asleep: `trn run --wake` wakes it for the job and puts it to sleep afterwards."
            )
        if report.verdict.state != "ready":
            raise NotStartedError(f"not all nodes are verified: {report.verdict.reason}. See `trn nodes`.")
        current = jobs.current()
        state = None if current is None or jobs.has_ended(current.job.id) else jobs.state(current.job.id)
        if state is not None and not state.is_over:
            job_id = state.job.id
            raise NotStartedError(
                f"{job_id} runs on this cluster ({state.status}), and only one job can run at a time. "
                f"`trn logs {job_id} --follow` follows the job, `trn stop {job_id}` ends the job."
            )
        return ReadyCluster(current=current, members=[member.instance_id for member in report.membership.members])


@dataclass(frozen=True, kw_only=True)
class ReadyCluster:
    """A cluster that can start a job.

    Attributes:
        current: The previous job; None if there was none.
        members: Instance IDs of the nodes, ordered by rank.
    """

    current: CurrentJob | None
    members: Sequence[str]


@dataclass
class PreparedClusterJob(PreparedStoredJob):
    """Implements trainium_core.jobs.engine.PreparedJob. Call `check` before `submit`."""

    jobs: ClusterJobs
    _over: CurrentJob | None = None

    @property
    def as_json(self) -> Mapping[str, Any]:
        return asdict(self.job)

    @property
    def as_text(self) -> str:
        return node_script(self.job)

    def check(self) -> Sequence[str]:
        ready = self.jobs.ready()
        self._over = ready.current
        if self.job.nodes > len(ready.members):
            raise NotStartedError(f"the job needs {self.job.nodes} nodes, but the cluster has {len(ready.members)}.")
        self.find_submitter()
        return [*self.left_out_notes(), *self.find_checkpoint()]

    def rows(self) -> Sequence[tuple[str, str]]:
        hour = self.jobs.running_hour()
        return self.rows_with(("cluster", f"{hour} per hour, with or without a job"))

    def submit(self) -> Sequence[str]:
        if not self.store.submit(self.job, self.package.archive, over=self._over, uploads=self.uploads):
            raise NotStartedError("another job was started at the same time.")
        return ()
