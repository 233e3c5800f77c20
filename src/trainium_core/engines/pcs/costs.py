"""The billed items of PcsStack. This package has no prices for AWS PCS itself."""

from collections.abc import Iterator, Sequence

from trainium_core.costs.items import (
    Billed,
    CostItem,
    alarms_item,
    always,
    cost_item,
    file_system_items,
    network_items,
    volume_items,
)
from trainium_core.engines.pcs.slurm_settings import ENDPOINT_SERVICES, cluster_size, with_login_volume
from trainium_core.plan import Plan
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, PricedItem

_CLUSTER = "AWS::PCS::Cluster"
_GROUP = "AWS::PCS::ComputeNodeGroup"
_GUARD_ALARMS = 1
"""Alarms about the guard, the function that stops the launches of failing nodes."""


def cost_items(plan: Plan) -> Iterator[CostItem]:
    """All billed items. Jobs use all nodes in a running hour; static nodes are billed without jobs too."""
    pcs = plan.pcs
    for nodes, billed in _nodes(plan):
        yield _instances(plan, nodes, billed)
    if pcs.min_nodes:
        yield from always(volume_items(plan, pcs.min_nodes, _GROUP))
    if plan.nodes > pcs.min_nodes:
        yield from volume_items(plan, plan.nodes - pcs.min_nodes, _GROUP)
    if pcs.login:
        kind = pcs.login_instance_type
        yield cost_item(plan, f"{kind}, login node", ON_DEMAND, _GROUP, "always", instance_type=kind)
        yield from always(volume_items(with_login_volume(plan), 1, _GROUP))
    yield cost_item(plan, f"Slurm controller, {cluster_size(plan)}", "pcs-controller", _CLUSTER, "always")
    yield cost_item(plan, "Slurm management of running nodes", "pcs-nodes", _CLUSTER, "by use")
    if pcs.accounting:
        yield cost_item(plan, "Slurm accounting", "pcs-accounting", _CLUSTER, "always")
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")
    yield from file_system_items(plan)
    yield from always(network_items(plan, plan.network.effective_egress, services=ENDPOINT_SERVICES))
    has_controller = plan.pilot.ends is not None or plan.capacity == CAPACITY_BLOCK or plan.pilot.job_notices
    yield from alarms_item(plan, _GUARD_ALARMS + has_controller)


def job_items(plan: Plan, nodes: int) -> Sequence[CostItem]:
    """The items of the nodes that one job runs on."""
    ((_, billed), *_) = _nodes(plan)
    return [_instances(plan, nodes, billed), *volume_items(plan, nodes, _GROUP)]


def cost_notes(plan: Plan) -> Iterator[str]:
    static = plan.pcs.min_nodes
    yield (
        f"without jobs, {static} of {plan.nodes} nodes run: a running hour is one in which jobs use all of them"
        if plan.capacity in (ON_DEMAND, SPOT)
        else "the reserved instances are paid for whether jobs use them or not"
    )
    yield "AWS PCS bills the controller, each managed node and accounting at prices that this package does not have"
    if plan.pcs.image is None:
        yield "the image of EC2 Image Builder is billed as an EBS snapshot, and its build instance while the build runs"


def _nodes(plan: Plan) -> Iterator[tuple[int, Billed]]:
    """Yields groups of nodes: the number of nodes, and when they are billed."""
    if plan.capacity == CAPACITY_BLOCK:
        yield plan.nodes, "prepaid"
    elif plan.capacity == "reservation":
        yield plan.nodes, "always"
    else:
        if plan.pcs.min_nodes:
            yield plan.pcs.min_nodes, "always"
        if plan.nodes > plan.pcs.min_nodes:
            yield plan.nodes - plan.pcs.min_nodes, "running"


def _instances(plan: Plan, nodes: int, billed: Billed) -> CostItem:
    product = ON_DEMAND if plan.capacity == "reservation" else plan.capacity
    priced = PricedItem(
        product=product,
        region=plan.region,
        instance_type=plan.instance_type,
        zone_id=(plan.zone_id or "") if product == SPOT else "",
    )
    what = f"{nodes} x {plan.instance_type}"
    return CostItem(what=what, item=priced, quantity=nodes, billed=billed, resource_type=_GROUP)
