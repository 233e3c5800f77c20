"""Calls of several services that moto lacks, or answers otherwise than AWS does."""

import json
from typing import Any

from moto.budgets.exceptions import NotFoundException
from moto.core.responses import ActionResult
from moto.core.utils import unix_time
from moto.iam.access_control import PermissionResult


def update_budget(response: Any) -> str:
    """AWS Budgets UpdateBudget, which leaves the notifications as they are."""
    new: dict[str, Any] = response._get_param("NewBudget")
    budgets = response.backend.budgets[response._get_param("AccountId")]
    name = new["BudgetName"]
    if name not in budgets:
        raise NotFoundException(f"Unable to update budget: {name} - the budget doesn't exist.")
    kept = {"TimePeriod": budgets[name].budget["TimePeriod"]}
    budgets[name].budget = {**kept, **new, "LastUpdatedTime": unix_time()}
    return "{}"


def get_ebs_default_kms_key_id(response: Any) -> ActionResult:
    """The key that EBS encrypts new volumes with, which moto lets one set and not ask."""
    return ActionResult({"KmsKeyId": response.ec2_backend.default_kms_key_id or "alias/aws/ebs"})


def put_backup_policy(response: Any) -> tuple[str, dict[str, str]]:
    """EFS: whether AWS Backup backs the file system up. Nothing does so here."""
    policy = response._get_param("BackupPolicy")
    file_systems = response.efs_backend.describe_file_systems(file_system_id=response._get_param("FileSystemId"))[1]
    file_systems[0]._backup = policy["Status"] == "ENABLED"
    return json.dumps({"BackupPolicy": policy}), {"Content-Type": "application/json"}


def log_permissions_enabled_policy(*_arguments: Any, **_named: Any) -> bool:
    """Server access logs of S3 buckets are settings that are kept, without any log."""
    return True


def log_incoming_request(*_arguments: Any) -> None:
    pass


def lookup_events(_response: Any) -> ActionResult:
    return ActionResult({"Events": []})


def get_permission(*_arguments: Any) -> PermissionResult:
    return PermissionResult.NEUTRAL
