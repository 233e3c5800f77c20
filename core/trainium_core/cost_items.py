"""What AWS bills the cluster of a plan for: the one list, which a test compares with the resources of the template."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trainium_core.naming import SESSION_SERVICES
from trainium_core.plan import Plan
from trainium_core.prices import CAPACITY_BLOCK, ON_DEMAND, SPOT, PricedItem

Billed = Literal["running", "always", "prepaid", "by use"]
"""While nodes run; as long as the stack (or the reservation) is there; once, at purchase; by an amount nobody knows."""


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """So much of a priced item. `resource_type` is the CloudFormation type of what is billed, or launches it."""

    what: str
    item: PricedItem
    quantity: int
    billed: Billed
    resource_type: str


def cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """Everything the plan is billed for, whatever its price. A VPC of the user's own is billed to them already."""
    return (_instances(plan), *_storage(plan), *_network(plan))


def _instances(plan: Plan) -> CostItem:
    # A reservation costs the on-demand rate, whether instances run in it or not.
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


def _storage(plan: Plan) -> Iterator[CostItem]:
    yield CostItem(
        what=f"{plan.nodes} x {plan.root_volume_gib} GiB gp3 volume",
        item=PricedItem(product="gp3-storage", region=plan.region),
        quantity=plan.nodes * plan.root_volume_gib,
        billed="running",
        resource_type="AWS::EC2::LaunchTemplate",
    )
    yield CostItem(
        what="S3 storage",
        item=PricedItem(product="s3-storage", region=plan.region),
        quantity=1,
        billed="by use",
        resource_type="AWS::S3::Bucket",
    )


def _network(plan: Plan) -> Iterator[CostItem]:
    def item(what: str, product: str, resource_type: str, quantity: int = 1, billed: Billed = "always") -> CostItem:
        priced = PricedItem(product=product, region=plan.region)
        return CostItem(what=what, item=priced, quantity=quantity, billed=billed, resource_type=resource_type)

    if plan.effective_egress == "vpc-endpoints":
        count, endpoint = len(SESSION_SERVICES), "AWS::EC2::VPCEndpoint"
        yield item(f"{count} interface endpoints", "interface-endpoint", endpoint, count)
        yield item("Endpoint data", "interface-endpoint-data", endpoint, billed="by use")
    if plan.effective_egress == "nat-gateway":
        yield item("NAT gateway", "nat-gateway", "AWS::EC2::NatGateway")
        yield item("Public IPv4 address", "public-ipv4", "AWS::EC2::EIP")
        yield item("NAT gateway data", "nat-gateway-data", "AWS::EC2::NatGateway", billed="by use")
        yield item("Data to the internet", "internet-data-out", "AWS::EC2::InternetGateway", billed="by use")
