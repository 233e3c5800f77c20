"""Warnings for the author of a plan for a cluster of EC2 instances."""

from collections.abc import Iterator, Mapping

from trainium_core.plan import Plan
from trainium_core.plan.warnings import (
    LUSTRE_CLIENT,
    capacity_warnings,
    image_warnings,
    merged,
    pilot_warnings,
    root_volume_warnings,
)


def cluster_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    return merged(_warnings(plan))


def _warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    for text in image_warnings(plan.image, plan.region, plan.framework, plan.type):
        yield "ami", text
    if plan.network.effective_egress == "none":
        yield (
            "egress",
            "with trn:egress=none nodes reach only S3: no sessions, no packages; everything a job needs must be "
            "in the image or in S3",
        )
    egress = plan.network.effective_egress
    if plan.setup_script is not None and egress in ("vpc-endpoints", "none"):
        yield (
            "setup_script",
            f"with trn:egress={egress} the setup script has no internet access: fetch what it needs from S3, "
            "or choose trn:egress=nat-gateway",
        )
    if plan.file_systems.fsx_lustre is not None:
        yield "fsx_lustre", LUSTRE_CLIENT
    for text in capacity_warnings(plan.capacity):
        yield "capacity", text
    if plan.pilot.ends is None and plan.capacity != "capacity-block":
        yield "ends", _without_end(plan)
    if plan.pilot.idle_minutes is not None and plan.capacity == "reservation":
        yield ("idle_minutes", "a reservation is billed while its nodes sleep: cancel it when you no longer need it")
    yield from pilot_warnings(plan)
    if not plan.type.is_gpu:
        for text in root_volume_warnings(plan.root_volume_gib):
            yield "root_volume_gib", text
    if plan.network.vpc_id is not None and plan.network.route_table_id is None:
        yield (
            "route_table_id",
            f"nodes report to S3: {plan.network.subnet_id} must have a route there already, or set trn:route_table_id",
        )


def _without_end(plan: Plan) -> str:
    """What happens to the nodes of a plan without trn:ends. A reservation is billed whether its nodes run or not."""
    stay = "run" if plan.capacity == "reservation" else "are billed"
    ends = ["`trn sleep` runs"]
    if plan.pilot.idle_minutes is not None:
        ends.append(f"they are unused for {plan.pilot.idle_minutes} minutes")
    if plan.pilot.stops_at_budget:
        ends.append("the budget is spent")
    return (
        f"no date ends the pilot: {plan.nodes} x {plan.instance_type} {stay} until {', '.join(ends)} or the stack is "
        "destroyed; set trn:ends, such as 5d"
    )
