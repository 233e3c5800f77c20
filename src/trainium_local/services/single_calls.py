"""Calls of several services that moto lacks or answers differently from AWS, and caches for lookups of moto."""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cache
from typing import Any

from moto.budgets.exceptions import NotFoundException
from moto.core.responses import ActionResult
from moto.core.utils import unix_time
from moto.iam.access_control import PermissionResult
from moto.kms import kms_backends
from moto.logs.models import DeliverySource

_NO_SCRIPTS = {"SourceS3Uri": "s3://sagemaker-"}
"""What moto accepts for an instance group without lifecycle scripts; it is not returned."""

_EBS_ALIAS = "alias/aws/ebs"

_one_conditional_write_at_a_time = threading.Lock()


@cache
def method_names(original: Callable[[type], list[str]], response_class: type) -> list[str]:
    return original(response_class)


@cache
def moto_modules(original: Callable[[], Iterable[str]]) -> frozenset[str]:
    return frozenset(original())


def put_object(original: Any, response: Any) -> Any:
    """S3 refuses one of two concurrent conditional writes. Nodes rely on this to decide what must happen once."""
    with _one_conditional_write_at_a_time if response.headers.get("If-None-Match") else nullcontext():
        return original(response)


def update_budget(response: Any) -> str:
    """AWS Budgets UpdateBudget. The notifications remain unchanged."""
    new: dict[str, Any] = response._get_param("NewBudget")
    budgets = response.backend.budgets[response._get_param("AccountId")]
    name = new["BudgetName"]
    if name not in budgets:
        raise NotFoundException(f"Unable to update budget: {name} - the budget doesn't exist.")
    kept = {"TimePeriod": budgets[name].budget["TimePeriod"]}
    budgets[name].budget = {**kept, **new, "LastUpdatedTime": unix_time()}
    return "{}"


def get_ebs_default_kms_key_id(response: Any) -> ActionResult:
    """Return the default KMS key of EBS, which moto can set but not read.

    moto's encrypted volumes set the AWS managed key as the default.
    """
    ec2 = response.ec2_backend
    key, kms = ec2.default_kms_key_id, kms_backends[ec2.account_id][ec2.region_name]
    of_aws = not key or (kms.alias_exists(_EBS_ALIAS) and kms.describe_key(_EBS_ALIAS).arn == key)
    return ActionResult({"KmsKeyId": _EBS_ALIAS if of_aws else key})


def put_delivery_source(
    original: Any, backend: Any, name: str, resource_arn: str, log_type: str, tags: dict[str, str]
) -> Any:
    if resource_arn.split(":")[2] != "pcs":
        return original(backend, name, resource_arn, log_type, tags)
    source: Any = DeliverySource(
        account_id=backend.account_id,
        region=backend.region_name,
        name=name,
        resource_arn=resource_arn,
        log_type=log_type,
        tags=tags,
    )
    backend.delivery_sources[name] = source
    if tags:
        backend.tag_resource(source.arn, tags)
    return source


def put_backup_policy(response: Any) -> tuple[str, dict[str, str]]:
    """EFS: whether AWS Backup backs up the file system. No backups are made here."""
    policy = response._get_param("BackupPolicy")
    file_systems = response.efs_backend.describe_file_systems(file_system_id=response._get_param("FileSystemId"))[1]
    file_systems[0]._backup = policy["Status"] == "ENABLED"
    return json.dumps({"BackupPolicy": policy}), {"Content-Type": "application/json"}


def lookup_events(_response: Any) -> ActionResult:
    return ActionResult({"Events": []})


def get_permission(*_arguments: Any) -> PermissionResult:
    return PermissionResult.NEUTRAL


def validate_instance_type(_configuration: Any, instance_type: str) -> None:
    """Accept all instance types."""


def create_cluster(
    original: Any, backend: Any, cluster_name: str, instance_groups: Any, vpc_config: Any, tags: Any
) -> Any:
    groups = [{"ThreadsPerCore": 1, "LifeCycleConfig": _NO_SCRIPTS} | group for group in instance_groups or []]
    arn = original(backend, cluster_name, groups, vpc_config, tags)
    cluster = backend.clusters[cluster_name]
    for group in cluster.instance_groups:
        if group["LifeCycleConfig"] is _NO_SCRIPTS:
            del group["LifeCycleConfig"]
    for node in cluster.nodes.values():
        if node.life_cycle_config is _NO_SCRIPTS:
            node.life_cycle_config = {}
    return arn
