"""The parameters of a training job that are not in the plan."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from trainium_core.jobs.images import training_image
from trainium_core.jobs.request import JobRequest
from trainium_core.naming import CHECKPOINT_PREFIX, OUTPUT_PREFIX, SOURCE_PREFIX, job_id_prefix, training_job_name_part
from trainium_core.plan import Plan
from trainium_core.plan.settings.sagemaker import SageMakerSettings
from trainium_wire.stack_record import StackRecord

LONGEST_NAME = 63
"""Maximum number of characters in the ID of a job, which names folders. AWS Batch allows 128."""

_TIME_CHARACTERS = len("20261121-133000")

_MINUTES_PER_HOUR = 60


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """One training job. Type, number of instances, capacity, region and tags come from the plan.

    Attributes:
        name: ID of the job, and its name in AWS Batch.
        script: Path of the script in the packed source.
        image: URI of the container image.
        role_arn: Role of the job.
        submitted_by: Name of the IAM user or of the role's session that submits the job.
        source_url: S3 URL of the folder with the packed source.
        output_url: S3 URL of the folder for outputs.
        cache_url: S3 URL of the compile cache; None without a cache.
        checkpoint_url: S3 URL of the folder for checkpoints; None without checkpoints.
        arguments: Arguments of the script.
        environment: Environment variables.
        inputs: S3 URLs by the name of their channel, the folder below /opt/ml/input/data.
        input_mode: File or FastFile. Default: File.
        max_minutes: Maximum run time in minutes. Default: the default of trn:sagemaker_max_runtime_hours.
        spot_wait_minutes: Additional minutes to wait for spot capacity. Default: the maximum run time.
        warm_pool_minutes: Minutes that the instances are kept, and billed, after the job. Default: 0.
        training_plan_arn: Training plan to run in, if any.
        subnet_ids: Subnets of the instances; empty for SageMaker's network.
        security_group_ids: Security groups of the instances.
        kms_key: Key that encrypts outputs, and volumes of instances without local disks. Default: AWS managed keys.
    """

    name: str
    script: str
    image: str
    role_arn: str
    submitted_by: str
    source_url: str
    output_url: str
    cache_url: str | None = None
    checkpoint_url: str | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    input_mode: str = "File"
    max_minutes: int = SageMakerSettings.max_runtime_hours * _MINUTES_PER_HOUR
    spot_wait_minutes: int | None = None
    warm_pool_minutes: int = 0
    training_plan_arn: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    kms_key: str | None = None

    @property
    def training_job_name(self) -> str:
        """The name in the request to SageMaker, to which AWS Batch adds a prefix and the ID of the attempt."""
        return training_job_name(self.name)

    @property
    def effective_wait_minutes(self) -> int:
        return self.max_minutes if self.spot_wait_minutes is None else self.spot_wait_minutes


def new_training_job(
    plan: Plan,
    request: JobRequest,
    record: StackRecord,
    *,
    script: str,
    source_folder: str,
    submitted_by: str,
    now: datetime,
) -> TrainingJob:
    """The training job of a request in the plan's stack.

    Args:
        plan: The plan of the stack.
        request: The request, already validated by `check_keys`.
        record: The record of the stack.
        script: Path of the script in the packed source.
        source_folder: Folder of the packed source below the stack's folder.
        submitted_by: Who submits the job.
        now: Time in the job's name.

    Raises:
        JobError: The plan names no image, and AWS has no training image in the region.
    """
    settings = plan.sagemaker
    name = job_name(plan, request.name or script, now)
    bucket_url = f"s3://{record.bucket}"
    checkpoints = request.checkpoints or f"{bucket_url}/{CHECKPOINT_PREFIX}"
    longest = settings.max_runtime_hours * _MINUTES_PER_HOUR
    return TrainingJob(
        name=name,
        script=script,
        image=settings.image or training_image(plan.region),
        role_arn=record.role_arn or "",
        submitted_by=submitted_by,
        source_url=f"{bucket_url}/{SOURCE_PREFIX}/{source_folder}/",
        output_url=f"{bucket_url}/{OUTPUT_PREFIX}",
        cache_url=record.cache_url if request.compile_cache else None,
        checkpoint_url=f"{checkpoints.rstrip('/')}/{request.resume or name}",
        arguments=request.arguments,
        environment=request.environment,
        inputs=request.inputs,
        input_mode=request.input_mode,
        max_minutes=longest if request.time_limit_minutes is None else request.time_limit_minutes,
        spot_wait_minutes=request.spot_wait_minutes,
        warm_pool_minutes=request.warm_pool_minutes,
        training_plan_arn=request.training_plan,
        subnet_ids=record.subnet_ids,
        security_group_ids=record.security_group_ids,
        # Without a key, SageMaker uses the AWS managed key and ignores the bucket's default key.
        kms_key=record.kms_key_arn,
    )


def on_spot(plan: Plan, training_plan_arn: str | None = None) -> bool:
    """Whether jobs run on spot capacity. Jobs in a training plan never do."""
    return plan.capacity == "spot" and training_plan_arn is None


def job_name(plan: Plan, called: str, now: datetime) -> str:
    """The ID of a job, such as `trn-pilot--train-20261121-133000`.

    Args:
        plan: The plan, which names the cluster.
        called: The name in the request, or the path of the script, of which the stem is used.
        now: The time of the submission.
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "-", PurePosixPath(called).stem).strip("-") or "job"
    time = f"{now:%Y%m%d-%H%M%S}"
    start = f"{job_id_prefix(plan.cluster_name)}{stem}"[: LONGEST_NAME - len(time) - 1].rstrip("-")
    return f"{start}-{time}"


def training_job_name(job_id: str) -> str:
    """The name of a job's training job, from its ID: the cluster and the time of the submission."""
    return training_job_name_part(job_id.partition("--")[0]) + job_id[-_TIME_CHARACTERS:]


def sagemaker_type(instance_type: str) -> str:
    """SageMaker's name for an EC2 instance type."""
    return f"ml.{instance_type}"
