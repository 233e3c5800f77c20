"""What is said of a plan with EksJobsStack: costs, rows, warnings, and the settings that it does not use."""

from collections.abc import Iterator, Mapping, Sequence

from trainium_core.costs.items import CostItem, cost_item
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import CLUSTER_GROUP, GROUP_OF
from trainium_wire.kubernetes import CLUSTER_LABEL

_USED_GROUPS = (CLUSTER_GROUP, "cache", "jobs", "eks")
_UNUSED = frozenset(
    {
        *(key for key, group in GROUP_OF.items() if group not in _USED_GROUPS),
        *("ami", "ami_parameter", "availability_zone_id", "capacity", "quota_check", "reservation_id"),
        *("root_device_name", "root_volume_gib", "root_volume_initialization", "root_volume_throughput"),
        "setup_script",
    }
) - {"ends"}


def unused_settings(_: Plan) -> Mapping[str, str]:
    """The settings that neither the stack nor its jobs use, each with the fix."""
    return dict.fromkeys(_UNUSED, "set the parameter of NeuronNodeGroup, or remove it")


def eks_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    if plan.pilot.ends is None:
        return {}
    text = (
        "trn:ends does not end EksJobsStack, its jobs or the nodes of the EKS cluster: `trn destroy` deletes the "
        "stack, and `aws eks update-nodegroup-config --scaling-config desiredSize=0` terminates the nodes of a group"
    )
    return {"ends": text}


def cost_items(plan: Plan) -> Iterator[CostItem]:
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")


def cost_notes(_: Plan) -> Iterator[str]:
    nodes = "the EKS cluster and its nodes are billed whether jobs run or not, and are not included"
    yield f"{CONSTRUCT_IDS['eks']}: {nodes}"


def plan_rows(plan: Plan) -> Sequence[tuple[str, str]]:
    return [
        ("EKS cluster", f"{plan.eks.cluster}, namespace {plan.eks.namespace}"),
        ("Each job", f"up to {plan.nodes} x {plan.instance_type} with the label {CLUSTER_LABEL}={plan.cluster_name}"),
        ("Devices", "by claim from DRA drivers" if plan.eks.claims_devices(plan.type) else "from device plugins"),
    ]
