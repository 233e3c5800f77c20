"""The billed items of a cluster. A test compares this list with the resources of the template."""

from trainium_core.costs.items import (
    Billed,
    CostItem,
    alarms_item,
    cost_item,
    file_system_items,
    metrics_items,
    network_items,
    volume_items,
)
from trainium_core.plan import Plan
from trainium_core.plan.values import PlanValues
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, Price, PricedItem
from trainium_core.prices.quotes import quotes

_ALARMS_ON_METRICS = 4


def cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The billed items of the cluster, with or without a known price. Existing resources are not included."""
    return (
        _instances(plan),
        *volume_items(plan, plan.nodes, "AWS::EC2::LaunchTemplate"),
        cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use"),
        *file_system_items(plan),
        *network_items(plan, plan.network.effective_egress),
        *metrics_items(plan),
        *alarms_item(plan, _alarms(plan)),
    )


def _alarms(plan: Plan) -> int:
    return plan.needs_topic + (0 if plan.cloudwatch_metrics == "none" else _ALARMS_ON_METRICS)


def node_price(values: PlanValues) -> Price | None:
    """The hourly list price of a running node, from the user's prices or those of this package; None if unknown.

    A node in a Capacity Block has none, because it is prepaid.
    """
    if values.capacity == CAPACITY_BLOCK:
        return None
    item = _node_item(values)
    return quotes([item], own=values.prices, aws=None).prices.get(item)


def _node_item(values: PlanValues) -> PricedItem:
    return PricedItem(
        # A reservation is billed at the on-demand rate even while it is unused.
        product=ON_DEMAND if values.capacity == "reservation" else values.capacity,
        region=values.region,
        instance_type=values.instance_type,
        zone_id=(values.zone_id or "") if values.capacity == SPOT else "",
    )


def _instances(plan: Plan) -> CostItem:
    billed: dict[str, Billed] = {"reservation": "always", CAPACITY_BLOCK: "prepaid"}
    return CostItem(
        what=f"{plan.nodes} x {plan.instance_type}",
        item=_node_item(plan),
        quantity=plan.nodes,
        billed=billed.get(plan.capacity, "running"),
        resource_type="AWS::AutoScaling::AutoScalingGroup",
    )
