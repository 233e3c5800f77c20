"""A plan's training jobs in SageMaker: their preparation, states and prices."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from trainium_core.aws.identity import AwsIdentities
from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total, dollars
from trainium_core.engines.sagemaker.aws_training_jobs import TrainingJobs, TrainingLog
from trainium_core.engines.sagemaker.costs import SPOT_TRAINING, TRAINING
from trainium_core.engines.sagemaker.jobs.job import (
    TrainingJob,
    new_training_job,
    on_spot,
    sagemaker_type,
)
from trainium_core.engines.sagemaker.jobs.queue import JobQueue, chosen_queue, service_job_request, share_identifier
from trainium_core.engines.sagemaker.jobs.request import channel_digest, channel_files
from trainium_core.engines.sagemaker.jobs.states import job_state
from trainium_core.jobs.aws_engine_record import engine_record
from trainium_core.jobs.engine import PriceBasis
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.naming import job_id_prefix
from trainium_core.plan import Plan
from trainium_core.prices.price import ON_DEMAND, SPOT, PricedItem
from trainium_core.prices.quotes import quotes
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError

_NOT_AWS = "requests do not go to AWS, and an emulator only records training jobs"
_NO_RESTART = "remove it: SageMaker does not start a job again, and --resume JOB continues from its checkpoints"


class SageMakerJobs:
    """The jobs of a plan's SageMaker stack. Implements trainium_core.jobs.engine.JobEngine."""

    key = "sagemaker"
    shortest_poll, log_delay = 10.0, 10.0
    bills_jobs = True
    instead: Mapping[str, str] = {
        "command": "put the command into a script, and pass the script",
        "nodes": "remove it: a training job has all instances of the plan, trn:nodes",
        "setup": "remove it, and list packages in the source's requirements.txt, which the container installs",
        "framework": "remove it: the training image determines the framework",
        "secrets": "remove it, and let the script read the secret as the job's role",
        "retries": _NO_RESTART,
        "retry_on_exit_codes": _NO_RESTART,
        "retry_on_hang": _NO_RESTART,
        "hang_minutes": "remove it, and set a time limit",
        "checkpoint_seconds": "remove it: SageMaker copies checkpoints when they change",
        "resume_files": "remove it: each instance gets all checkpoints",
        "rank": "remove it: the log does not show which process printed a line",
        "node": "remove it: each line has the name of its node",
        "attempt": "remove it: the log does not show which attempt printed a line",
        "observe": "remove it, or run the job on a cluster: its nodes read the counters of the frameworks",
        "profile": "remove it, and set NEURON_RT_INSPECT_ENABLE in the environment, which profiles every rank",
        "profile_device": "remove it, and set NEURON_RT_INSPECT_DEVICE_PROFILE in the environment",
        "recovery": "remove it: SageMaker does not start a job again after the loss of an instance",
        "wake": "remove it: SageMaker has no nodes to wake",
    }

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        self.plan, self.stack, self.clients = plan, stack, clients
        self.store = TrainingJobs(plan.region, plan.cluster_name, clients=clients)

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> "PreparedTrainingJob":
        folder = channel_digest(package)
        record = engine_record(self.plan, self.stack, self.key, self.clients)
        identity = AwsIdentities(self.plan.region, clients=self.clients).identity()
        job = new_training_job(
            self.plan,
            request,
            record,
            script=package.script,
            source_folder=folder,
            submitted_by=identity.name,
            now=now,
        )
        queue = chosen_queue(self.store.service_jobs.queues(), self.plan, request, record)
        share = share_identifier(identity.name)
        submitted = service_job_request(self.plan, job, queue, priority=request.priority, share=share)
        return PreparedTrainingJob(self, job, package, queue, submitted)

    def claims(self, job_id: str) -> bool:
        return job_id.startswith(job_id_prefix(self.plan.cluster_name))

    def newest(self, most: int, *, brief: bool = False) -> Sequence[JobState]:  # noqa: ARG002 - all is in one answer
        return [self._state(entry) for entry in self.store.newest(most)]

    def last(self) -> JobState | None:
        return next(iter(self.newest(1)), None)

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:  # noqa: ARG002 - all is in one answer
        described = self.store.described(job_id)
        return None if described is None else self._state(described)

    def _state(self, described: Mapping[str, Any]) -> JobState:
        state = job_state(described)
        return (
            state
            if self.store.runs_code
            else replace(state, places={**state.places, "note": f"no code ran: {_NOT_AWS}"})
        )

    def open_log(
        self,
        job_id: str,  # noqa: ARG002 - the state of the job names its training job
        *,
        rank: int | None = None,
        node: int | None = None,
        attempt: int | None = None,
    ) -> "TrainingLog":
        assert rank is node is None, "the log has the lines of all nodes, without their ranks"
        assert attempt is None, "the log does not show attempts"
        return self.store.open_log()

    def stop(self, job_id: str) -> None:
        self.store.stop(job_id)

    def stop_restarts(self, job_id: str) -> None:
        """AWS Batch does not start an ended job."""

    def hourly(self, state: JobState) -> Total:
        described = self.store.described(state.job.id) or {}
        resources = described.get("ResourceConfig", {})
        if "TrainingPlanArn" in resources:
            return Total(usd=Decimal(0), unknown=1)
        instance_type = resources.get("InstanceType", "").removeprefix(sagemaker_type(""))
        return self.price(
            instance_type, resources.get("InstanceCount", 0), spot=described.get("EnableManagedSpotTraining", False)
        )

    def price_basis(self, state: JobState) -> PriceBasis:
        described = self.store.described(state.job.id) or {}
        if "TrainingPlanArn" in described.get("ResourceConfig", {}):
            return PriceBasis(purchase="training plan", includes="nothing", not_paid="the training plan is prepaid")
        purchase = (SPOT if described.get("EnableManagedSpotTraining") else ON_DEMAND) if described else None
        return PriceBasis(purchase=purchase, includes="the SageMaker price of the job's instances")

    def price(self, instance_type: str, count: int, *, spot: bool) -> Total:
        """The hourly price of `count` instances."""
        product = SPOT_TRAINING if spot else TRAINING
        item = PricedItem(product=product, region=self.plan.region, instance_type=instance_type)
        aws = AwsPrices(self.plan.region, clients=self.clients)
        price = quotes([item], own=self.plan.prices, aws=aws).prices.get(item)
        if price is None or price.usd is None:
            return Total(usd=Decimal(0), unknown=1)
        return Total(usd=price.usd * count, unknown=0)


@dataclass
class PreparedTrainingJob:
    """Implements trainium_core.jobs.engine.PreparedJob."""

    jobs: SageMakerJobs
    job: TrainingJob
    package: SourcePackage
    queue: JobQueue
    request: Mapping[str, Any]

    @property
    def job_id(self) -> str:
        return self.job.name

    @property
    def as_json(self) -> Mapping[str, Any]:
        return self.request

    @property
    def as_text(self) -> str:
        return json.dumps(self.request, indent=2)

    def find_checkpoint(self) -> Sequence[str]:
        """SageMaker copies all checkpoints of the resumed job to its folder."""
        return ()

    def started_after_waking(self, seconds: float) -> None:
        raise NotImplementedError("check_keys refuses `wake`")

    def check(self) -> Sequence[str]:
        """SageMaker validates quota, role and network when the job leaves its queue."""
        return () if self.jobs.store.runs_code else (f"No code will run: {_NOT_AWS}.",)

    def rows(self) -> Sequence[tuple[str, str]]:
        plan, job = self.jobs.plan, self.job
        spot, priority = on_spot(plan, job.training_plan_arn), self.request.get("schedulingPriority", 0)
        bought = f"in {job.training_plan_arn}" if job.training_plan_arn else "spot" if spot else "on demand"
        time = f"stopped after {job.max_minutes:,} min"
        if spot:
            time += f", or after {job.max_minutes + job.effective_wait_minutes:,} min with waits for spot capacity"
        if job.warm_pool_minutes:
            time += f"; the instances stay {job.warm_pool_minutes} min for the next job"
        return [
            ("instances", f"{plan.nodes} x {sagemaker_type(plan.instance_type)} in {plan.region}, {bought}"),
            ("image", job.image),
            ("output", job.output_url),
            ("checkpoints", job.checkpoint_url or "none"),
            ("queue", self.queue.name + (f", priority {priority}" if priority else "")),
            ("network", ", ".join([*job.subnet_ids, *job.security_group_ids]) or "managed by SageMaker"),
            ("time", time),
            ("cost", self._cost(spot=spot)),
        ]

    def _cost(self, *, spot: bool) -> str:
        if self.job.training_plan_arn is not None:
            return "the training plan is prepaid"
        plan = self.jobs.plan
        hour = self.jobs.price(plan.instance_type, plan.nodes, spot=spot)
        if hour.unknown:
            return f"per hour: {hour}; set trn:prices to a file with your price"
        minutes = self.job.max_minutes + self.job.warm_pool_minutes
        return f"per hour: {hour}; at most, in {minutes / 60:g} h: {dollars(hour.usd * minutes / 60)}"

    def upload(self) -> Sequence[str]:
        self.jobs.store.put(self.job.source_url, channel_files(self.package))
        return ()

    def submit(self) -> Sequence[str]:
        # Jobs with the same ID would write their checkpoints into the same folder.
        if not self.jobs.store.claim(urlsplit(self.job.source_url).netloc, self.job_id):
            raise RequestRefusedError(f"another job has the ID {self.job_id}: repeat the command")
        self.upload()
        self.jobs.store.service_jobs.submit(self.request)
        return ()
