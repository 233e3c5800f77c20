"""Warnings for the author of a plan for training jobs, and the settings that training jobs do not use."""

from collections.abc import Mapping

from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import CLUSTER_GROUP, GROUP_OF

_USED_GROUPS = (CLUSTER_GROUP, "cache", "network", "sagemaker")
_UNUSED = frozenset(
    {
        *(key for key, group in GROUP_OF.items() if group not in _USED_GROUPS),
        *("ami", "ami_parameter", "placement_group", "quota_check", "reservation_id", "root_device_name"),
        *("root_volume_initialization", "root_volume_throughput", "secondary_interface_type", "setup_script"),
    }
) - {"ends"}
_NETWORK = ("availability_zone_id", "dns_servers", "egress", "route_table_id", "subnet_id", "vpc_cidr", "vpc_id")
_FIXES = {"job_inputs": "name the data in trn:sagemaker_data"}


def unused_settings(plan: Plan) -> Mapping[str, str]:
    """The settings that neither the stack nor its training jobs use, each with the fix."""
    unused = {key: _FIXES.get(key, "remove it") for key in _UNUSED}
    if not plan.sagemaker.vpc:
        unused |= dict.fromkeys(_NETWORK, "set trn:sagemaker_vpc, or remove it")
    return unused


def training_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    if plan.pilot.ends is None:
        return {}
    text = (
        "trn:ends does not end SageMakerTrainingStack or its training jobs: each job ends at its maximum run time, and "
        "`trn destroy` deletes the stack"
    )
    return {"ends": text}
