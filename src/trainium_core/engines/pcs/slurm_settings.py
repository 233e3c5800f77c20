"""The Slurm configuration of a plan: cluster, node group, GRES and queues, by Slurm's parameter names.

PcsStack passes the configuration to AWS PCS, and the node lab renders slurm.conf and gres.conf from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainium_core.facts import facts
from trainium_core.plan import Plan

GRES_NAME = "neuron"
"""The generic resource (GRES). A node has one for each Neuron device. Jobs request N with --gres=neuron:N."""

NODE_GROUP = "nodes"
"""The name of the compute node group of the nodes. AWS PCS names nodes after their group: nodes-1."""

EPILOG = "/opt/trn/slurm/epilog"
"""Path of the epilog on every node."""

CLUSTER_SETTINGS = {"Epilog": EPILOG}
"""Cluster settings of slurm.conf, except those that AWS PCS always sets."""

ENDPOINT_SERVICES = ("pcs",)
"""AWS services that nodes call, besides S3 and the services of Session Manager."""

_FIRST_WITH_EXCLUSIVE = "26.05"
_DEFAULT_PRIORITY = 1


@dataclass(frozen=True, kw_only=True)
class SlurmQueue:
    """One queue. Jobs in a queue with a higher priority are scheduled first (PriorityTier)."""

    name: str
    priority: int = _DEFAULT_PRIORITY
    is_default: bool = False


def queues(plan: Plan) -> Sequence[SlurmQueue]:
    """The queues of the plan; the first is the default."""
    return [_queue(text, is_default=position == 0) for position, text in enumerate(plan.pcs.queues)]


def _queue(text: str, *, is_default: bool) -> SlurmQueue:
    name, _, priority = text.partition(":")
    return SlurmQueue(name=name, priority=int(priority or _DEFAULT_PRIORITY), is_default=is_default)


def login_group(plan: Plan) -> str:
    """The name of the compute node group of the login node.

    A group cannot change its instance type, and a new group needs a name that is not taken.
    """
    return f"login-{plan.pcs.login_instance_type.replace('.', '-')}"


def with_node_image(plan: Plan) -> Plan:
    """The plan with the image of the Slurm nodes as its image. An image of trn:pcs_ami promises no framework."""
    return plan if plan.pcs.image is None else replace(plan, ami=plan.pcs.image, ami_parameter=None)


def with_login_volume(plan: Plan) -> Plan:
    """The plan with the root volume of the login node: large enough for the image, with gp3's included throughput."""
    included = facts()["gp3_throughput"]["included"]
    return replace(plan, root_volume_throughput=included, root_volume_initialization=None)


def cluster_size(plan: Plan) -> str:
    """The smallest size of AWS PCS that has room for the nodes and the login node."""
    needed = plan.nodes + plan.pcs.login
    sizes = facts()["pcs"]["sizes"]
    return min((size["nodes"], name) for name, size in sizes.items() if size["nodes"] >= needed)[1]


def group_settings(plan: Plan) -> Mapping[str, str]:
    """Settings of the nodes' entry in slurm.conf."""
    return {"Gres": f"{GRES_NAME}:{plan.type.neuron_devices}", "Features": ",".join(features(plan))}


def features(plan: Plan) -> Sequence[str]:
    """Features for --constraint: neuron, the instance type, its NeuronCores, and the software stack if known."""
    framework = with_node_image(plan).framework
    stack = [framework.stack] if framework else []
    return [GRES_NAME, plan.instance_type, f"neuroncores{plan.neuron_cores_per_node}", *stack]


def gres_records(plan: Plan) -> Sequence[Mapping[str, str]]:
    """The records of gres.conf for the nodes. They count devices and name no device files.

    AWS PCS checks a record for syntax only, and drains a node whose record names a missing file.
    """
    return [{"Name": GRES_NAME, "Count": str(plan.type.neuron_devices)}]


def queue_settings(plan: Plan, queue: SlurmQueue) -> Mapping[str, str]:
    """Settings of a queue's entry in slurm.conf. Jobs get whole nodes."""
    whole = plan.pcs.slurm_version >= _FIRST_WITH_EXCLUSIVE
    settings = {"Exclusive": "NODE"} if whole else {"OverSubscribe": "EXCLUSIVE"}
    settings["PriorityTier"] = str(queue.priority)
    if queue.is_default:
        settings["Default"] = "YES"
    return settings


def cpus(plan: Plan) -> int:
    """The CPUs that Slurm sees on a node: AWS PCS sets one thread per core, and a vCPU is a thread."""
    return plan.type.vcpus // facts()["pcs"]["threads_of_types"]
