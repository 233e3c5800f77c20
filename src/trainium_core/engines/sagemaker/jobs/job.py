"""What is wanted of one training job, beside the plan: everything else about it is a projection of the two."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from trainium_core.engines.sagemaker.jobs.images import training_image
from trainium_core.jobs.request import JobRequest
from trainium_core.naming import training_job_prefix
from trainium_core.plan import Plan
from trainium_core.plan.settings.sagemaker import SageMakerSettings

LONGEST_NAME = 63
"""Characters of the name of a training job (botocore, TrainingJobName)."""

_MINUTES_PER_HOUR = 60


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """One training job. Type, number of instances, capacity, region and tags are the plan's.

    script: path of the script in its source directory, which is packed below `source_url`. arguments: given to it.
    inputs: S3 URLs by the name of their channel, the folder below /opt/ml/input/data; `input_mode`: File or FastFile.
    max_minutes: how long it may run; spot_wait_minutes: how much longer with waiting for spot capacity.
    warm_pool_minutes: how long the instances are kept, and paid for, after the job.
    cache_url, checkpoint_url: None for none. kms_key: for what the job writes.
    """

    name: str
    script: str
    image: str
    role_arn: str
    source_url: str
    output_url: str
    cache_url: str | None = None
    checkpoint_url: str | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    input_mode: str = "File"
    max_minutes: int = SageMakerSettings.budget_hours * _MINUTES_PER_HOUR
    spot_wait_minutes: int | None = None
    warm_pool_minutes: int = 0
    training_plan_arn: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    kms_key: str | None = None

    @property
    def effective_wait_minutes(self) -> int:
        return self.max_minutes if self.spot_wait_minutes is None else self.spot_wait_minutes


REQUIRED_OUTPUTS = ("RoleArn", "SourceUrl", "OutputUrl", "CheckpointUrl", "CacheUrl")
"""Of the stack: where a job finds its role and its folders in S3."""


def new_training_job(
    plan: Plan, request: JobRequest, outputs: Mapping[str, str], *, script: str, source_folder: str, now: datetime
) -> TrainingJob:
    """The training job that a request comes to in the plan's stack.

    Args:
        plan: the plan of the stack.
        request: of which `check_keys` has refused what SageMaker does not take.
        outputs: of the stack, all REQUIRED_OUTPUTS among them.
        script: its path in the packed source.
        source_folder: the folder of the packed source below the stack's own.
        now: the time of the job's name.
    """
    settings = plan.sagemaker
    name = job_name(plan, request.name or script, now)
    kept = request.checkpoints or outputs["CheckpointUrl"]
    budget = settings.budget_hours * _MINUTES_PER_HOUR
    return TrainingJob(
        name=name,
        script=script,
        image=settings.image or training_image(plan.region),
        role_arn=outputs["RoleArn"],
        source_url=f"{outputs['SourceUrl'].rstrip('/')}/{source_folder}/",
        output_url=outputs["OutputUrl"].rstrip("/"),
        cache_url=outputs["CacheUrl"].rstrip("/") if request.compile_cache else None,
        checkpoint_url=f"{kept.rstrip('/')}/{request.resume or name}",
        arguments=request.arguments,
        environment=request.environment,
        inputs=request.inputs,
        input_mode=request.input_mode,
        max_minutes=budget if request.time_limit_minutes is None else request.time_limit_minutes,
        spot_wait_minutes=request.spot_wait_minutes,
        warm_pool_minutes=request.warm_pool_minutes,
        training_plan_arn=request.training_plan,
        subnet_ids=_list(outputs.get("SubnetIds", "")),
        security_group_ids=_list(outputs.get("SecurityGroupIds", "")),
        # Without a key SageMaker encrypts with one of AWS's own, whatever the bucket's default is.
        kms_key=settings.kms_key or outputs.get("KmsKeyArn"),
    )


def on_spot(plan: Plan, training_plan_arn: str | None = None) -> bool:
    """Whether jobs run on spot capacity. That of a training plan never is."""
    return plan.capacity == "spot" and training_plan_arn is None


def job_name(plan: Plan, script: str, now: datetime) -> str:
    """A name for a job that starts now, such as `trn-pilot--train-20261121-133000`: the cluster, the script, UTC."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", PurePosixPath(script).stem).strip("-") or "job"
    time = f"{now:%Y%m%d-%H%M%S}"
    begin = f"{training_job_prefix(plan.cluster_name)}{stem}"[: LONGEST_NAME - len(time) - 1].rstrip("-")
    return f"{begin}-{time}"


def sagemaker_type(instance_type: str) -> str:
    """SageMaker's name for an EC2 instance type."""
    return f"ml.{instance_type}"


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
