"""What a plan expects of each of its nodes: the content of /etc/trn/plan.json, which the node verifies itself by."""

from typing import Any

from trainium_core.catalog.neuron_packages import neuron_packages
from trainium_core.catalog.neuron_software import frameworks
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import network_interfaces

LUSTRE_PATH = "/fsx"
EFS_PATH = "/efs"
SCRATCH_PATH = "/scratch"


def node_expectations(plan: Plan) -> dict[str, Any]:
    """What each node of the plan should find on itself, ready for JSON.

    Nothing of it depends on how many nodes there are, so that a node stays when others join. Numbers of devices and
    cores are per node, memory is in GiB per device, disks in GB each. `logical_neuroncore_config` is None for a type
    that has none, `framework` when any will do, `scratch` without local disks. `frameworks` are the environments that
    the node may test itself with by their names, the preferred ones first, and the stack of each.
    """
    kind, rendezvous, limits = plan.type, facts()["rendezvous"], facts()["process_limits"]
    possible = [one for one in frameworks().values() if plan.framework in (None, one) and one.runs_on(kind.accelerator)]
    return {
        "cluster_name": plan.cluster_name,
        "instance_type": plan.instance_type,
        "neuron_devices": kind.neuron_devices,
        "neuron_cores": plan.neuron_cores_per_node,
        "device_memory_gib": kind.device_memory_gib,
        "logical_neuroncore_config": plan.lnc if kind.logical_neuroncore_configs else None,
        "efa_devices": sum(interface.interface_type is not None for interface in network_interfaces(plan)),
        "ultraserver_nodes": kind.instances_per_ultraserver,
        "nvme_disks": kind.nvme_disks,
        "nvme_disk_gb": kind.nvme_disk_gb,
        "scratch": SCRATCH_PATH if kind.nvme_disks else None,
        "framework": plan.framework.environment if plan.framework else None,
        "frameworks": {one.environment: one.stack for one in possible},
        "neuron_software": plan.node.neuron_software,
        "self_test": _self_test(plan.neuron_cores_per_node),
        "internode": _internode(plan),
        "driver_rules": neuron_packages()["compatibility"]["rules"],
        "rendezvous_port": rendezvous["port"],
        "root_comm_port": rendezvous["root_comm_port"],
        "reserved_ports": [rendezvous["port"], rendezvous["root_comm_port"]],
        "memlock": limits["memlock"],
        "nofile": limits["nofile"],
        "mounts": _mounts(plan),
        "suppress_checks": list(plan.node.suppress_checks),
        "verification": plan.node.verification,
        "node_recovery": plan.node.recovery,
        "internode_ssh": plan.node.internode_ssh,
    }


def _self_test(cores: int) -> dict[str, int]:
    """Seconds for the first core, for each other and for all, the port of the first core, and blocks of memory."""
    known = facts()["self_test"]
    seconds = known["seconds"] + known["seconds_per_core"] * cores
    same = ("first_seconds", "all_seconds", "first_port", "memory_blocks")
    return {"seconds": seconds, **{name: known[name] for name in same}}


def _internode(plan: Plan) -> dict[str, float] | None:
    """Limits of the test over all nodes; None where nodes cannot compute together, without EFA."""
    known = facts()["internode"]
    names = ("assembly_seconds", "step_seconds", "grace_seconds", "all_seconds", "slow")
    return {name: known[name] for name in names} if plan.uses_efa else None


def _mounts(plan: Plan) -> list[dict[str, str]]:
    lustre = [{"kind": "lustre", "path": LUSTRE_PATH}] if plan.file_systems.fsx_lustre is not None else []
    return lustre + ([{"kind": "efs", "path": EFS_PATH}] if plan.file_systems.efs is not None else [])
