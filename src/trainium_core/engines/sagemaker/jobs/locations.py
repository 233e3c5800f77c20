"""Where a training job finds its role, its buckets and its network: the outputs of the stack, or options instead."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.naming import (
    CACHE_PREFIX,
    CHECKPOINT_PREFIX,
    OUTPUT_PREFIX,
    SOURCE_PREFIX,
)
from trainium_core.setting_schema.setting import BUCKET_NAME


@dataclass(frozen=True, kw_only=True)
class JobLocations:
    """URLs are folders in S3, without a slash at the end. kms_key: that what is in them is encrypted with."""

    role_arn: str
    source_url: str
    output_url: str
    checkpoint_url: str
    cache_url: str
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    kms_key: str | None = None


def locations_from_outputs(outputs: Mapping[str, str], stack: str = SAGEMAKER.construct_id) -> JobLocations:
    """The places that the stack's outputs name. Raises JobError for a stack that is not the one meant."""
    missing = [name for name in _REQUIRED if name not in outputs]
    if missing:
        raise JobError([_lacks(stack, missing)])
    return JobLocations(
        role_arn=outputs["RoleArn"],
        source_url=outputs["SourceUrl"].rstrip("/"),
        output_url=outputs["OutputUrl"].rstrip("/"),
        checkpoint_url=outputs["CheckpointUrl"].rstrip("/"),
        cache_url=outputs["CacheUrl"].rstrip("/"),
        subnet_ids=_list(outputs.get("SubnetIds", "")),
        security_group_ids=_list(outputs.get("SecurityGroupIds", "")),
        kms_key=outputs.get("KmsKeyArn"),
    )


def locations_in_bucket(bucket: str, *, role_arn: str) -> JobLocations:
    """Places in one bucket of the user's own, outside of any VPC. Raises JobError for what is no name of a bucket."""
    if not re.fullmatch(BUCKET_NAME, bucket):
        fix = "give its name alone, without s3:// and folder"
        raise JobError([JobProblem(key="--bucket", got=bucket, allowed="the name of an S3 bucket", fix=fix)])
    url = f"s3://{bucket}"
    return JobLocations(
        role_arn=role_arn,
        source_url=f"{url}/{SOURCE_PREFIX}",
        output_url=f"{url}/{OUTPUT_PREFIX}",
        checkpoint_url=f"{url}/{CHECKPOINT_PREFIX}",
        cache_url=f"{url}/{CACHE_PREFIX}",
    )


def no_stack(stack: str, region: str) -> JobError:
    """There is no such stack."""
    fix = f"run `cdk deploy {SAGEMAKER.construct_id}`, or give --role and --bucket"
    return JobError([JobProblem(key="--stack", got=stack, allowed=f"a stack that is deployed in {region}", fix=fix)])


_REQUIRED = ("RoleArn", "SourceUrl", "OutputUrl", "CheckpointUrl", "CacheUrl")


def _lacks(stack: str, missing: list[str]) -> JobProblem:
    allowed = f"a stack with the outputs {', '.join(_REQUIRED)}"
    fix = f"it lacks {', '.join(missing)}: give the SageMaker stack, or --role and --bucket"
    return JobProblem(key="--stack", got=stack, allowed=allowed, fix=fix)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
