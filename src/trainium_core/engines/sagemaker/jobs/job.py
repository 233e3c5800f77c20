"""What is wanted of one training job, beside the plan: everything else about it is a projection of the two."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from trainium_core.naming import training_job_prefix
from trainium_core.plan import Plan
from trainium_core.plan.settings.sagemaker import SageMakerSettings

LONGEST_NAME = 63
"""Characters of the name of a training job (botocore, TrainingJobName)."""


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """One training job. Type, number of instances, region and tags are the plan's.

    script: path of the script in its source directory, which is packed below `source_url`.
    arguments: given to the script as they are; hyperparameters come after them as --name value.
    inputs: S3 URLs by the name of their channel, the folder below /opt/ml/input/data; `input_mode`: File or FastFile.
    max_hours: how long it may run; max_wait_hours: with waiting for spot capacity, default twice that.
    warm_pool_minutes: how long the instances are kept, and paid for, after the job.
    spot: default what the plan says. cache_url, checkpoint_url: None for none. kms_key: for what the job writes.
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
    hyperparameters: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    input_mode: str = "File"
    max_hours: float = SageMakerSettings.budget_hours
    max_wait_hours: float | None = None
    warm_pool_minutes: int = 0
    spot: bool | None = None
    training_plan_arn: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    kms_key: str | None = None

    def on_spot(self, plan: Plan) -> bool:
        """Whether it runs on spot capacity: what the job says, else what the plan says without a training plan."""
        if self.spot is None:
            return plan.capacity == "spot" and self.training_plan_arn is None
        return self.spot

    @property
    def effective_max_wait_hours(self) -> float:
        return 2 * self.max_hours if self.max_wait_hours is None else self.max_wait_hours


def job_name(plan: Plan, script: str, now: datetime) -> str:
    """A name for a job that starts now, such as `trn-pilot-train-20261121-133000`: the cluster's, the script's, UTC."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", PurePosixPath(script).stem).strip("-") or "job"
    time = f"{now:%Y%m%d-%H%M%S}"
    begin = f"{training_job_prefix(plan.cluster_name)}{stem}"[: LONGEST_NAME - len(time) - 1].rstrip("-")
    return f"{begin}-{time}"


def sagemaker_type(instance_type: str) -> str:
    """SageMaker's name for an EC2 instance type."""
    return f"ml.{instance_type}"
