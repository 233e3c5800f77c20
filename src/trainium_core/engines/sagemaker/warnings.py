"""Warnings for the author of a plan for training jobs."""

from collections.abc import Iterator, Mapping

from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import CLUSTER_GROUP, GROUP_OF, SETTINGS, setting_value
from trainium_core.plan.warnings import merged

_USED_GROUPS = (CLUSTER_GROUP, "cache", "jobs", "network", "sagemaker")
_UNUSED = frozenset(
    {
        *(key for key, group in GROUP_OF.items() if group not in _USED_GROUPS),
        *("ami", "ami_parameter", "placement_group", "quota_check", "reservation_id", "root_device_name"),
        *("root_volume_initialization", "root_volume_throughput", "secondary_interface_type", "setup_script"),
    }
) - {"ends"}
"""The settings that neither the stack nor its training jobs use."""

_ONLY_IN_A_VPC = frozenset(
    {"availability_zone_id", "dns_servers", "egress", "route_table_id", "subnet_id", "vpc_cidr", "vpc_id"}
)
"""The settings that only training jobs in a VPC use."""


def training_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings about settings that do not apply to training jobs, by setting."""
    return merged(_warnings(plan))


def _warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.pilot.ends is not None:
        yield (
            "ends",
            "trn:ends does not end SageMakerTrainingStack or its training jobs: each job ends at its maximum run time, "
            "and `trn destroy` deletes the stack",
        )
    for key in SETTINGS:
        # Other stacks of the plan may use it, but a file system is expected wherever a job runs.
        is_alone = plan.stacks == ("sagemaker",) or GROUP_OF[key] == "file-systems"
        if not is_alone or setting_value(plan, key) == SETTINGS[key].default:
            continue
        if key in _UNUSED:
            yield key, "SageMakerTrainingStack and its training jobs do not use it: remove it"
        elif key in _ONLY_IN_A_VPC and not plan.sagemaker.vpc:
            yield key, "training jobs use it only in a VPC: set trn:sagemaker_vpc, or remove it"
