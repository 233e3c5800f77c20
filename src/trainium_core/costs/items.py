"""A cost item, and the items that several engines share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from trainium_core.facts import facts
from trainium_core.naming import SESSION_SERVICES
from trainium_core.plan import Plan
from trainium_core.plan.settings.file_systems import NEW_EFS
from trainium_core.plan.settings.network import Egress
from trainium_core.prices.price import PricedItem
from trainium_runtime.node_metrics import CLUSTER_METRICS, NODE_METRICS

Billed = Literal["running", "always", "prepaid", "by use"]
"""When an item is billed: while the cluster is awake, while the stack or reservation exists, once at purchase, or by an
unknown amount of use."""


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """A quantity of a priced item.

    Attributes:
        what: The item in words.
        billed: When the item is billed.
        resource_type: The CloudFormation type of the billed resource, or of the resource that launches it.
    """

    what: str
    item: PricedItem
    quantity: int | Decimal
    billed: Billed
    resource_type: str


def network_items(
    plan: Plan, egress: Egress | Literal["existing"], *, services: Sequence[str] = ()
) -> Iterator[CostItem]:
    """The billed items of a network.

    Args:
        plan: The plan.
        egress: The egress of the network.
        services: Services with interface endpoints, in addition to those of sessions.
    """
    if egress == "vpc-endpoints":
        count, endpoint = len(SESSION_SERVICES) + len(services), "AWS::EC2::VPCEndpoint"
        yield cost_item(plan, f"{count} interface endpoints", "interface-endpoint", endpoint, "running", count)
        yield cost_item(plan, "Endpoint data", "interface-endpoint-data", endpoint, "by use")
    if egress == "nat-gateway":
        gateway = "AWS::EC2::NatGateway"
        yield cost_item(plan, "NAT gateway", "nat-gateway", gateway, "running")
        yield cost_item(plan, "Public IPv4 address", "public-ipv4", "AWS::EC2::EIP", "running")
        yield cost_item(plan, "NAT gateway data", "nat-gateway-data", gateway, "by use")
        yield cost_item(plan, "Data to the internet", "internet-data-out", "AWS::EC2::InternetGateway", "by use")


def volume_items(plan: Plan, nodes: int, resource_type: str) -> Iterator[CostItem]:
    """The root volumes of running nodes."""
    volume = f"{nodes} x {plan.root_volume_gib} GiB gp3 volume"
    yield cost_item(plan, volume, "gp3-storage", resource_type, "running", nodes * plan.root_volume_gib)
    included = facts()["gp3_throughput"]["included"]
    faster = plan.root_volume_throughput - included
    if faster:
        billed_rate = Decimal(nodes * faster) / 1024
        yield cost_item(
            plan, f"{nodes} x {faster} MiB/s above {included}", "gp3-throughput", resource_type, "running", billed_rate
        )
    if plan.root_volume_initialization:
        yield cost_item(plan, "Volume initialization", "volume-initialization", resource_type, "by use")


def file_system_items(plan: Plan) -> Iterator[CostItem]:
    """The file systems that the cluster's stack creates for the nodes."""
    if isinstance(plan.file_systems.fsx_lustre, int):
        size = plan.file_systems.fsx_lustre
        lustre = "AWS::FSx::FileSystem"
        yield cost_item(plan, f"{size} GiB FSx for Lustre", "fsx-lustre-storage", lustre, "always", size)
    if plan.file_systems.efs == NEW_EFS:
        efs = "AWS::EFS::FileSystem"
        yield cost_item(plan, "EFS storage", "efs-storage", efs, "by use")
        yield cost_item(plan, "Read from EFS", "efs-read", efs, "by use")
        yield cost_item(plan, "Written to EFS", "efs-write", efs, "by use")


def alarms_item(plan: Plan, count: int) -> Iterator[CostItem]:
    """CloudWatch alarms on metrics, with standard resolution."""
    if count:
        what = f"{count} CloudWatch alarm{'s' if count > 1 else ''}"
        yield cost_item(plan, what, "alarm", "AWS::CloudWatch::Alarm", "always", count)


def metrics_items(plan: Plan) -> Iterator[CostItem]:
    """The dashboard, and the metrics of the cluster and its nodes, which CloudWatch bills for the hours with data."""
    by_node = plan.nodes if plan.cloudwatch_metrics == "nodes" else 0
    if plan.cloudwatch_metrics != "none":
        count = len(NODE_METRICS) * (by_node + 1) + len(CLUSTER_METRICS)
        yield cost_item(plan, f"{count} CloudWatch metrics", "metric", "AWS::Logs::LogGroup", "running", count)
        yield cost_item(plan, "Dashboard (first 3 are free)", "dashboard", "AWS::CloudWatch::Dashboard", "always")


def cost_item(
    plan: Plan,
    what: str,
    product: str,
    resource_type: str,
    billed: Billed,
    quantity: int | Decimal = 1,
    instance_type: str = "",
) -> CostItem:
    """An item with the same price in every zone."""
    priced = PricedItem(product=product, region=plan.region, instance_type=instance_type)
    return CostItem(what=what, item=priced, quantity=quantity, billed=billed, resource_type=resource_type)


def always(items: Iterable[CostItem]) -> Iterator[CostItem]:
    """The items of a stack that does not sleep."""
    for item in items:
        yield replace(item, billed="always") if item.billed == "running" else item
