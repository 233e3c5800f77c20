"""The billed items of a cluster. A test compares this list with the resources of the template."""

from trainium_core.costs.items import (
    Billed,
    CostItem,
    alarms_item,
    cost_item,
    file_system_items,
    metrics_item,
    network_items,
    volume_items,
)
from trainium_core.plan import Plan
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, PricedItem


def cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The billed items of the cluster, with or without a known price. Existing resources are not included."""
    return (
        _instances(plan),
        *volume_items(plan, plan.nodes, "AWS::EC2::LaunchTemplate"),
        cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use"),
        *file_system_items(plan),
        *network_items(plan, plan.network.effective_egress),
        *metrics_item(plan),
        *alarms_item(plan, int(plan.needs_schedule or plan.pilot.budget_usd is not None)),
    )


def _instances(plan: Plan) -> CostItem:
    # A reservation is billed at the on-demand rate even while it is unused.
    product = ON_DEMAND if plan.capacity == "reservation" else plan.capacity
    billed: dict[str, Billed] = {"reservation": "always", CAPACITY_BLOCK: "prepaid"}
    return CostItem(
        what=f"{plan.nodes} x {plan.instance_type}",
        item=PricedItem(
            product=product,
            region=plan.region,
            instance_type=plan.instance_type,
            zone_id=(plan.zone_id or "") if product == SPOT else "",
        ),
        quantity=plan.nodes,
        billed=billed.get(plan.capacity, "running"),
        resource_type="AWS::AutoScaling::AutoScalingGroup",
    )
