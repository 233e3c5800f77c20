"""The expected hardware and software of a node: the content of /etc/trn/plan.json, for its verification."""

from typing import Any

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.catalog.neuron_software import frameworks, neuron_packages
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings

LUSTRE_PATH = "/fsx"
EFS_PATH = "/efs"
SCRATCH_PATH = "/scratch"


def node_expectations(node: NodeSettings) -> dict[str, Any]:
    """The expected values of a node, serialisable as JSON.

    They do not depend on the number of nodes, so that existing nodes are kept when nodes are added. Numbers of devices
    and cores are per node, memory is in GiB per device, and disk sizes are in GB per disk. `framework` is None if any
    framework is accepted. `logical_neuroncore_config` is None if the instance type has none, `scratch` without local
    disks, `gpu_verification` without GPUs, `internode` without EFA, and `metrics_port` without a port for Prometheus.
    `frameworks` has the stacks of the possible environments by name, the preferred ones first.
    """
    kind, rendezvous, limits = node.type, facts()["rendezvous"], facts()["process_limits"]
    possible = [
        framework
        for framework in frameworks().values()
        if node.framework in (None, framework) and framework.runs_on(kind)
    ]
    return {
        "cluster_name": node.cluster_name,
        "instance_type": kind.name,
        "gpus": kind.gpus,
        "neuron_devices": kind.neuron_devices,
        "neuron_cores": node.neuron_cores,
        "device_memory_gib": kind.device_memory_gib,
        "logical_neuroncore_config": node.lnc if kind.logical_neuroncore_configs else None,
        "efa_devices": sum(interface.interface_type is not None for interface in node.network_interfaces),
        "ultraserver_nodes": kind.instances_per_ultraserver,
        "nvme_disks": kind.nvme_disks,
        "nvme_disk_gb": kind.nvme_disk_gb,
        "scratch": SCRATCH_PATH if kind.nvme_disks else None,
        "framework": node.framework.environment if node.framework else None,
        "frameworks": {framework.environment: framework.stack for framework in possible},
        "neuron_software": node.neuron_software,
        "gpu_verification": _gpu_proof(kind),
        "self_test": _self_test(node.processes),
        "internode": _internode(node),
        "driver_rules": [] if kind.is_gpu else neuron_packages()["compatibility"]["rules"],
        "rendezvous_port": rendezvous["port"],
        "root_comm_port": rendezvous["root_comm_port"],
        "reserved_ports": [rendezvous["port"], rendezvous["root_comm_port"]],
        "memlock": limits["memlock"],
        "nofile": limits["nofile"],
        "mounts": _mounts(node),
        "suppress_checks": list(node.suppress_checks),
        "verification": node.verification,
        "internode_ssh": node.internode_ssh,
        "metrics_port": node.metrics_port,
    }


def _self_test(cores: int) -> dict[str, int]:
    """Time limits in seconds (first core, each other core, all cores), first port, and memory blocks per core."""
    known = facts()["self_test"]
    seconds = known["seconds"] + known["seconds_per_core"] * cores
    same = ("first_seconds", "all_seconds", "first_port", "memory_blocks")
    return {"seconds": seconds, **{name: known[name] for name in same}}


def _gpu_proof(kind: InstanceType) -> dict[str, int] | None:
    """Level of dcgmi, bytes of the all-reduce, and time limits in seconds; None without GPUs."""
    known = facts()["gpu_verification"]
    names = ("dcgm_level", "dcgm_seconds", "nccl_bytes", "nccl_seconds")
    return {name: known[name] for name in names} if kind.is_gpu else None


def _internode(node: NodeSettings) -> dict[str, float] | None:
    """Time limits in seconds, and the fraction of the median bandwidth below which a node is slow; None without EFA."""
    known = facts()["internode"]
    names = ("assembly_seconds", "step_seconds", "grace_seconds", "all_seconds", "slow")
    return {name: known[name] for name in names} if node.uses_efa else None


def _mounts(node: NodeSettings) -> list[dict[str, str]]:
    paths = {"lustre": LUSTRE_PATH, "efs": EFS_PATH}
    return [{"kind": kind, "path": paths[kind]} for kind in node.mounts]
