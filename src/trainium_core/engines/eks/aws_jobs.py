"""The jobs of an EKS cluster: submitted with kubectl, with their records in S3."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total
from trainium_core.engines.eks.job_program import program_config_map
from trainium_core.engines.eks.job_set import (
    CLUSTER_LABEL,
    PodSettings,
    job_objects,
    job_set_name,
    priority_class,
)
from trainium_core.engines.eks.kubectl import Kubectl
from trainium_core.engines.eks.set_states import SetState, set_end, set_states
from trainium_core.engines.eks.yaml import yaml_documents
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.aws_stored_jobs import TRAINING_JOBS_ONLY, PreparedStoredJob, StoredJobs
from trainium_core.jobs.engine import NoStackError, NotStartedError
from trainium_core.jobs.images import training_image
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_core.prices.price import ON_DEMAND, PricedItem
from trainium_core.prices.quotes import quotes
from trainium_core.stacks.aws_records import AwsRecords
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.formats import moment
from trainium_wire.job import STOPPED
from trainium_wire.stack_record import StackRecord

_ASK_SECONDS = 15
"""Minimum time between requests to Kubernetes."""
_SILENT_SECONDS = 180
"""Pods report every 15 seconds. After this time without a report, Kubernetes is asked whether the JobSet still runs."""
_NEW_SECONDS = 300
"""For this time after the submission, the JobSet may not exist yet. Jobs are stored in S3 first."""
_KINDS = "jobsets.jobset.x-k8s.io,pods"


class KubernetesJobs(StoredJobs):
    """The jobs of a plan's EksJobsStack. Implements trainium_core.jobs.engine.JobEngine."""

    key = "eks"
    instead: Mapping[str, str] = {
        **TRAINING_JOBS_ONLY,
        "warm_pool_minutes": "remove it: the node group of the EKS cluster sets how many nodes run",
        "framework": "remove it: the container image determines the framework",
        "wake": "remove it: the node group of the EKS cluster sets how many nodes run",
        "recovery": "remove it: `trn bench` does not terminate nodes of an EKS cluster",
    }

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        super().__init__(plan, stack, clients)
        self.store = JobStore(plan.region, lambda: self.record.bucket, clients=clients)
        self.kubectl = Kubectl(plan.eks.cluster or "", plan.region, plan.eks.namespace)
        self._asked_at: float | None = None
        self._sets: Mapping[str, SetState] = {}

    @cached_property
    def record(self) -> StackRecord:
        """The record of the stack.

        Raises:
            JobError: The stack has no such resources.
            NoStackError: The stack is not deployed.
            UnavailableError: A request failed or was denied.
        """
        records = AwsRecords(self.plan.region, clients=self.clients).stack_records(self.stack)
        found = next((record for record in records if record.engine == self.key), None)
        if found is not None:
            return found
        if not records and AwsStacks(self.plan.region, clients=self.clients).deployed_stack(self.stack) is None:
            raise NoStackError(self.stack, self.plan.region)
        fix = "name the stack with EksJobs, or wait until it is deployed"
        raise JobError([JobProblem(key="--stack", got=self.stack, allowed="a stack with EksJobs", fix=fix)])

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> "PreparedEksJob":
        job = new_job(self.plan, request, script=package.script or None, now=now, source_sha256=package.digest)
        pods = PodSettings(
            image=self.plan.eks.image or training_image(self.plan.region),
            bucket=self.record.bucket,
            cache_url=self.record.cache_url,
            queue=request.queue,
            priority=request.priority,
        )
        return PreparedEksJob(
            plan=self.plan,
            store=self.store,
            clients=self.clients,
            job=job,
            package=package,
            uploads=request.uploads,
            jobs=self,
            pods=pods,
        )

    def last(self) -> JobState | None:
        return next(iter(self.newest(1)), None)

    def newest(self, most: int, *, brief: bool = False) -> Sequence[JobState]:
        return [self._current(state) for state in self.store.newest(most, brief=brief)]

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        state = self.store.state(job_id, every_node=every_node)
        return None if state is None else self._current(state)

    def stop(self, job_id: str) -> None:
        """Ask the pods to end the job. If not all of them run, delete the JobSet, and close the job.

        Raises:
            RequestRefusedError: AWS or Kubernetes refused a request.
            UnavailableError: A request failed or was denied. The pods may already have been asked.
            NoStackError: The stack is not deployed.
        """
        self.store.stop(job_id)
        self._asked_at = None
        found = self._ask().get(job_id)
        if found is not None and found.stage:
            self.kubectl.delete("jobset", found.name)
            self.store.close(job_id, "trn stop", STOPPED)

    def hourly(self, state: JobState) -> Total:
        item = PricedItem(product=ON_DEMAND, region=self.plan.region, instance_type=self.plan.instance_type)
        aws = AwsPrices(self.plan.region, clients=self.clients)
        price = quotes([item], own=self.plan.prices, aws=aws).prices.get(item)
        if price is None or price.usd is None:
            return Total(usd=Decimal(0), unknown=1)
        return Total(usd=price.usd * state.job.nodes, unknown=0)

    def _current(self, state: JobState) -> JobState:
        """The state of a job, from Kubernetes if its pods do not report.

        Records the end of a job whose JobSet has ended, or no longer exists.
        """
        if state.is_over or not _is_silent(state):
            return state
        job_id = state.job.id
        try:
            found = self._ask().get(job_id)
        except UnavailableError as error:
            return replace(state, detail=f"the JobSet could not be read: {error}")
        if found is not None and found.end is None:
            return replace(state, stage=found.stage, detail=found.detail)
        if found is None and _is_new(state):
            return state
        if not self.store.has_ended(job_id):
            result, reason = set_end(found)
            self.store.close(job_id, reason, result)
        return self.store.state(job_id) or state

    def _ask(self) -> Mapping[str, SetState]:
        if self._asked_at is None or time.monotonic() - self._asked_at > _ASK_SECONDS:
            self._sets = set_states(self.kubectl.items(_KINDS, f"{CLUSTER_LABEL}={self.plan.cluster_name}"))
            self._asked_at = time.monotonic()
        return self._sets


def _is_new(state: JobState) -> bool:
    at = moment(state.job.submitted_at)
    return at is not None and (datetime.now(UTC) - at).total_seconds() < _NEW_SECONDS


def _is_silent(state: JobState) -> bool:
    """Whether no attempt is running, or no pod has reported for _SILENT_SECONDS."""
    if not state.attempts or state.attempts[-1].outcome is not None:
        return True
    times = [node.at for node in state.attempts[-1].nodes if node.at is not None]
    last = max(times, default=None)
    return last is None or (datetime.now(UTC) - last).total_seconds() > _SILENT_SECONDS


@dataclass
class PreparedEksJob(PreparedStoredJob):
    """Implements trainium_core.jobs.engine.PreparedJob. Call `check` before `submit`."""

    jobs: KubernetesJobs
    pods: PodSettings

    @property
    def objects(self) -> Sequence[Mapping[str, Any]]:
        """The Kubernetes objects, the JobSet first."""
        return [*job_objects(self.plan, self.job, self.pods), program_config_map(self.plan.eks.namespace)]

    @property
    def as_json(self) -> Mapping[str, Any]:
        return {**asdict(self.job), "objects": self.objects}

    @property
    def as_text(self) -> str:
        return yaml_documents(self.objects)

    def check(self) -> Sequence[str]:
        kubectl, settings = self.jobs.kubectl, self.plan.eks
        kubectl.items(_KINDS, f"{CLUSTER_LABEL}={self.plan.cluster_name}")
        wanted = {"serviceaccount": settings.service_account}
        fixes = {
            "serviceaccount": f"create it: `kubectl create serviceaccount {settings.service_account} --namespace "
            f"{settings.namespace}`",
            "localqueues.kueue.x-k8s.io": "name an existing LocalQueue of the namespace",
            "workloadpriorityclasses.kueue.x-k8s.io": f"create one with the value {self.pods.priority}",
        }
        if self.pods.queue:
            wanted["localqueues.kueue.x-k8s.io"] = self.pods.queue
        if self.pods.priority:
            wanted["workloadpriorityclasses.kueue.x-k8s.io"] = priority_class(self.pods.priority)
        for kind, name in wanted.items():
            if not kubectl.has(kind, name):
                raise NotStartedError(f"{settings.cluster} has no {kind} {name}: {fixes[kind]}")
        self.find_submitter()
        return [*self.left_out_notes(), *self.find_checkpoint()]

    def rows(self) -> Sequence[tuple[str, str]]:
        settings = self.plan.eks
        hour = self.jobs.hourly(JobState(job=self.job, attempts=(), outcome=None))
        queue = self.pods.queue or "none: a pod that waits for other nodes holds its node"
        return self.rows_with(
            ("cluster", f"{settings.cluster}, namespace {settings.namespace}"),
            ("jobset", job_set_name(self.job)),
            ("image", self.pods.image),
            ("queue", f"{queue}, priority {self.pods.priority}" if self.pods.priority else queue),
            ("cost", f"{hour} per hour of its nodes on demand, which the node group launches and terminates"),
        )

    def upload(self) -> None:
        self.store.add(self.job, self.package.archive, self.uploads)

    def submit(self) -> Sequence[str]:
        self.upload()
        # In this order: a pod waits for what it uses.
        try:
            self.jobs.kubectl.apply(reversed(self.objects))
        except RequestRefusedError as error:
            self.store.close(self.job.id, str(error))
            raise
        return ()
