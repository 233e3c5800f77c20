"""The billed items of a cluster. A test compares this list with the resources of the template."""

from collections.abc import Iterator
from decimal import Decimal

from trainium_core.costs.items import Billed, CostItem, alarms_item, cost_item, network_items
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.settings.file_systems import NEW_EFS
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, PricedItem


def cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """All billed items of the cluster, with or without a known price. Existing resources are not included."""
    return (
        _instances(plan),
        *_precompile_host(plan),
        *_storage(plan),
        *_file_systems(plan),
        *network_items(plan, plan.network.effective_egress),
        *alarms_item(plan, plan.needs_clock + (plan.needs_clock or plan.pilot.budget_usd is not None)),
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


def _precompile_host(plan: Plan) -> Iterator[CostItem]:
    """The host. Its volume is left out: it costs about a hundredth of the instance."""
    kind = plan.cache.precompile_instance_type
    if kind is not None:
        group = "AWS::AutoScaling::AutoScalingGroup"
        yield cost_item(plan, f"{kind} of `trn precompile`", ON_DEMAND, group, "by use", instance_type=kind)


def _storage(plan: Plan) -> Iterator[CostItem]:
    volume = f"{plan.nodes} x {plan.root_volume_gib} GiB gp3 volume"
    of_all_nodes = plan.nodes * plan.root_volume_gib
    yield cost_item(plan, volume, "gp3-storage", "AWS::EC2::LaunchTemplate", "running", of_all_nodes)
    faster = plan.root_volume_throughput - facts()["gp3_throughput"]["included"]
    if faster:
        more = f"{plan.nodes} x {faster} MiB/s more"
        billed_rate = Decimal(plan.nodes * faster) / 1024
        yield cost_item(plan, more, "gp3-throughput", "AWS::EC2::LaunchTemplate", "running", billed_rate)
    if plan.root_volume_initialization:
        product = "volume-initialization"
        yield cost_item(plan, "Image to new volumes", product, "AWS::EC2::LaunchTemplate", "by use")
    yield cost_item(plan, "S3 storage", "s3-storage", "AWS::S3::Bucket", "by use")


def _file_systems(plan: Plan) -> Iterator[CostItem]:
    if isinstance(plan.file_systems.fsx_lustre, int):
        size = plan.file_systems.fsx_lustre
        yield cost_item(
            plan, f"{size} GiB FSx for Lustre", "fsx-lustre-storage", "AWS::FSx::FileSystem", "always", size
        )
    if plan.file_systems.efs == NEW_EFS:
        efs = "AWS::EFS::FileSystem"
        yield cost_item(plan, "EFS storage", "efs-storage", efs, "by use")
        yield cost_item(plan, "Read from EFS", "efs-read", efs, "by use")
        yield cost_item(plan, "Written to EFS", "efs-write", efs, "by use")
