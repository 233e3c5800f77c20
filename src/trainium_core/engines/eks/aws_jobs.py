"""The jobs of an EKS cluster: submitted with kubectl, with their records in S3."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total
from trainium_core.engines.eks.aws_job_place import check_deployed, kubectl_at, record_place
from trainium_core.engines.eks.job_program import program_config_map
from trainium_core.engines.eks.job_set import (
    PodSettings,
    job_objects,
    job_set_name,
    priority_class,
)
from trainium_core.engines.eks.kubectl import Kubectl
from trainium_core.engines.eks.set_states import OWNER_LABEL, SetState, queued_uids, set_states
from trainium_core.engines.eks.yaml import yaml_documents
from trainium_core.jobs.aws_engine_record import engine_record
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.aws_scheduled_jobs import NoAnswerError, PreparedScheduledJob, ScheduledJobs
from trainium_core.jobs.aws_stored_jobs import TRAINING_JOBS_ONLY
from trainium_core.jobs.engine import NotStartedError, PriceBasis
from trainium_core.jobs.images import training_image
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_core.prices.price import ON_DEMAND, PricedItem
from trainium_core.prices.quotes import quotes
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import UnavailableError
from trainium_wire.kubernetes import CLUSTER_LABEL
from trainium_wire.stack_record import StackRecord

_INCLUDES = "the on-demand list price of the job's nodes"
_NOT_PAID = "the node group of the EKS cluster determines how nodes are bought, and trn does not read it"
_KINDS, _WORKLOADS = "jobsets.jobset.x-k8s.io,pods", "workloads.kueue.x-k8s.io"


class KubernetesJobs(ScheduledJobs[SetState]):
    """The jobs of a plan's EksJobsStack. Implements trainium_core.jobs.engine.JobEngine."""

    key, scheduler = "eks", "Kubernetes"
    absent_detail = (
        "its YAML was not applied, or Kubernetes has deleted its JobSet, a day after its end: apply the YAML, or close "
        "the job with `trn stop`"
    )
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

    @cached_property
    def kubectl(self) -> Kubectl:
        """kubectl for the place of the deployed stack. Raises as `record`."""
        return kubectl_at(AwsService(self.plan.region, clients=self.clients), record_place(self.record))

    @cached_property
    def record(self) -> StackRecord:
        """The record of the stack.

        Raises:
            JobError: The stack has no such resources.
            NoStackError: The stack is not deployed.
            UnavailableError: A request failed or was denied.
        """
        return engine_record(self.plan, self.stack, self.key, self.clients)

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> "PreparedEksJob":
        if request.priority and not request.queue:
            fix = "add --queue NAME, or remove it: only the queues of Kueue order jobs by priority"
            raise JobError(
                [JobProblem(key="priority", got=request.priority, allowed="no priority without a queue", fix=fix)]
            )
        check_deployed(self.plan.eks, self.record)
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

    def hourly(self, state: JobState) -> Total:
        item = PricedItem(product=ON_DEMAND, region=self.plan.region, instance_type=self.plan.instance_type)
        aws = AwsPrices(self.plan.region, clients=self.clients)
        price = quotes([item], own=self.plan.prices, aws=aws).prices.get(item)
        if price is None or price.usd is None:
            return Total(usd=Decimal(0), unknown=1)
        return Total(usd=price.usd * state.job.nodes, unknown=0)

    def price_basis(self, state: JobState) -> PriceBasis:  # noqa: ARG002
        return PriceBasis(purchase=None, includes=_INCLUDES, not_paid=_NOT_PAID)

    def list_jobs(self) -> Mapping[str, SetState]:
        items = self.kubectl.items(_KINDS, f"{CLUSTER_LABEL}={self.plan.cluster_name}")
        workloads: Sequence[Mapping[str, Any]] = ()
        if queued := queued_uids(items):
            # Without permission, the state names the command that shows the reason.
            with suppress(UnavailableError):
                workloads = self.kubectl.items(_WORKLOADS, f"{OWNER_LABEL} in ({','.join(queued)})")
        return set_states(items, workloads)

    def cancel(self, job: SetState) -> None:
        self.kubectl.delete("jobset", job.name)

    def stop_restarts(self, job_id: str) -> None:
        """Delete a JobSet that waits, for example because Kueue suspended it when no retries were left."""
        job = self._ask().get(job_id)
        if job is not None and job.stage:
            self.cancel(job)

    def may_be_submitted(self, state: JobState) -> bool:
        """Whether no pods have run. Others may apply the YAML of an uploaded job at any time."""
        return not state.attempts


@dataclass
class PreparedEksJob(PreparedScheduledJob):
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

    def upload(self) -> Sequence[str]:
        self.find_submitter()
        notes = [*self.left_out_notes(), *self.find_checkpoint()]
        self.store.add(self.job, self.package.archive, self.uploads)
        return notes

    def start(self) -> Sequence[str]:
        # First what pods use. A JobSet without it would hold nodes and run nothing.
        job_set, *used = self.objects
        try:
            self.jobs.kubectl.apply(used)
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from error
        self.jobs.kubectl.apply([job_set])
        return ()
