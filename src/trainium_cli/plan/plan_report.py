"""A plan and its derived values, as rows and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from trainium_core.engines.registry import CLUSTER, plan_engines, plan_warnings
from trainium_core.nodes.next_steps import torchrun_command
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import (
    NetworkInterface,
    addresses_needed,
    network_interfaces,
    node_subnet_addresses,
)
from trainium_core.plan.pilot_end import read_pilot_end
from trainium_core.plan.settings.file_systems import NEW_EFS
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.quotas.ec2 import quota_need
from trainium_core.setting_schema.forms import as_written

_EGRESS = {
    "vpc-endpoints": "interface endpoints for sessions, a gateway endpoint for S3; no internet",
    "nat-gateway": "a NAT gateway to the internet, a gateway endpoint for S3",
    "none": "only a gateway endpoint for S3",
    "existing": "the egress of your VPC",
}


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """The effective settings except catalog and prices, derived values, and warnings."""
    need, ends = quota_need(plan), plan.pilot.ends
    return {
        "plan": {key: as_written(setting_value(plan, key)) for key in SETTINGS if key not in ("catalog", "prices")},
        "zone_id": plan.zone_id,
        "egress": plan.network.effective_egress,
        "image": plan.image,
        "processes_per_node": plan.processes_per_node,
        "neuron_cores_per_node": plan.neuron_cores_per_node,
        "logical_neuroncore_config": plan.lnc,
        "network_interfaces": [asdict(interface) for interface in network_interfaces(plan)],
        "addresses_needed": addresses_needed(plan),
        "creates_placement_group": plan.creates_placement_group,
        "cache_outlives_cluster": plan.cache.outlives_cluster,
        "quota_need": {"code": need.code, "name": need.name, "vcpus": need.vcpus} if need else None,
        "torchrun": torchrun_command(plan) if CLUSTER.key in plan.stacks else None,
        "end": None if ends is None else {"when": str(read_pilot_end(ends)), "actions": _actions_at_end(plan)},
        "warnings": dict(plan_warnings(plan)),
    }


def plan_sections(plan: Plan) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Titled rows of what the stacks of the plan create and need."""
    sections: dict[str, Sequence[tuple[str, str]]] = {}
    if any(engine.has_nodes for engine in plan_engines(plan)):
        sections |= {"Each node": _node(plan), "Infrastructure": _surroundings(plan), "Needs": _needs(plan)}
    else:
        sections["Each instance"] = [("Devices", _devices(plan))]
    for engine in plan_engines(plan):
        if rows := engine.plan_rows(plan):
            sections[engine.construct_id] = rows
    return sections


def _node(plan: Plan) -> list[tuple[str, str]]:
    node = plan.type
    return [
        ("Devices", _devices(plan)),
        ("Host", f"{node.vcpus} vCPUs, {node.memory_gib} GiB, {node.nvme_disks} x {node.nvme_disk_gb} GB local NVMe"),
        ("Network", f"{_cards(plan)}; {node.network_gbps:g} Gbps in total"),
        ("Root volume", f"{plan.root_volume_gib} GiB gp3, encrypted, on {plan.root_device_name}"),
        ("Image", plan.image),
        ("Setup script", "none" if plan.setup_script is None else f"{len(plan.setup_script.encode())} bytes"),
    ]


def _devices(plan: Plan) -> str:
    node = plan.type
    devices = f"{node.devices} {node.accelerator} with {node.device_memory_gib} GiB each"
    if not node.is_gpu:
        devices += f"; {plan.neuron_cores_per_node} NeuronCores for training"
    return f"{devices}, each of {plan.lnc} physical ones" if plan.lnc > 1 else devices


def _cards(plan: Plan) -> str:
    def kind(interface: NetworkInterface) -> tuple[int, str]:
        return interface.device, interface.interface_type or "an ordinary interface"

    groups = [(kind, [i.card for i in group]) for kind, group in groupby(network_interfaces(plan), key=kind)]
    return "; ".join(
        (f"cards {cards[0]} to {cards[-1]}" if len(cards) > 1 else f"card {cards[0]}") + f": {name} (device {device})"
        for (device, name), cards in groups
    )


def _surroundings(plan: Plan) -> list[tuple[str, str]]:
    own, has_cluster = plan.network.vpc_id is not None, CLUSTER.key in plan.stacks
    placement = plan.network.placement_group or (
        "a new group, strategy cluster" if plan.creates_placement_group else "no group"
    )
    lasts = "outlives the cluster" if plan.cache.outlives_cluster else "deleted with the cluster"
    wait = plan.node.timeout_minutes
    expiry = "" if plan.cache.bucket else f", graphs expire after {plan.cache.expiration_days} days"
    return [
        ("VPC", f"{plan.network.vpc_id}, {plan.network.subnet_id} (yours)" if own else f"new, {plan.network.vpc_cidr}"),
        ("Egress", f"{plan.network.effective_egress}: {_EGRESS[plan.network.effective_egress]}"),
        *([("Placement", placement)] if has_cluster else []),
        ("Compile cache", f"{plan.cache.bucket or 'a new S3 bucket'}; {lasts}{expiry}"),
        *_file_systems(plan),
        *(
            [("Readiness", f"the deployment waits up to {wait} min until every node is verified")]
            if has_cluster
            else []
        ),
        ("Pilot's end", pilot_end_text(plan)),
        *([("When idle", when_idle_text(plan))] if plan.pilot.idle_minutes else []),
        ("Tags", ", ".join(f"{k}={v}" for k, v in {"trn:cluster": plan.cluster_name, **plan.tags}.items())),
    ]


def _actions_at_end(plan: Plan) -> Mapping[str, str]:
    """What happens at the end of the pilot, by the construct ID of each stack that ends."""
    ending = [engine for engine in plan_engines(plan) if engine.ends_with_pilot]
    return {engine.construct_id: plan.pilot.action_at_end(can_sleep=engine.can_sleep) for engine in ending}


def pilot_end_text(plan: Plan) -> str:
    """When the pilot ends, and what happens then."""
    if plan.pilot.ends is None:
        return "none"
    end = read_pilot_end(plan.pilot.ends)
    start = "first deployment"
    if plan.capacity == CAPACITY_BLOCK:
        start = "start of the Capacity Block, or after the first deployment if that is later"
    when = f"at {end}" if end.at else f"{plan.pilot.ends} after the {start}"
    what = {"sleep": "the nodes are terminated; everything else stays", "destroy": "the stack is deleted"}
    actions = _actions_at_end(plan)
    if not actions:
        return "none: every training job ends by itself"
    if len({*actions.values()}) == 1:
        return f"{when}: {what[next(iter(actions.values()))]}"
    return "; ".join([f"{when}: {stack}: {what[action]}" for stack, action in actions.items()])


def when_idle_text(plan: Plan) -> str:
    """What happens to unused nodes, for a plan with idle minutes."""
    return (
        f"no nodes after {plan.pilot.idle_minutes} min without a job and without a NeuronCore or GPU in use; "
        "`trn wake` restores them"
    )


def _file_systems(plan: Plan) -> Iterator[tuple[str, str]]:
    mounted = plan.file_systems
    fate = "outlives the cluster" if mounted.at_destroy == "retain" else "deleted with the cluster"
    if mounted.fsx_lustre is not None:
        new = f"a new FSx for Lustre file system of {mounted.fsx_lustre} GiB; {fate}"
        yield "/fsx", new if isinstance(mounted.fsx_lustre, int) else f"{mounted.fsx_lustre} (yours)"
    if mounted.efs is not None:
        target = ", with a new mount target" if mounted.efs_security_group is None else ""
        yield "/efs", f"a new EFS file system; {fate}" if mounted.efs == NEW_EFS else f"{mounted.efs} (yours){target}"


def _needs(plan: Plan) -> list[tuple[str, str]]:
    need = quota_need(plan)
    have = node_subnet_addresses(plan)
    where = "of the largest possible subnet" if plan.network.vpc_id else "of the subnet"
    return [
        ("Quota", f"{need.vcpus} vCPUs of {need.code}, {need.name}" if need else _no_quota(plan)),
        ("Addresses", f"{addresses_needed(plan)} of the {have} {where}"),
        *([("Reservation", plan.reservation_id)] if plan.reservation_id else []),
    ]


def _no_quota(plan: Plan) -> str:
    if plan.capacity == "reservation":
        return "none: reserved capacity counts against the quota when it is reserved"
    return "unknown: no source documents the quota of this capacity"
