"""Warnings about fleets of EC2 instances, and for the author of a plan for one."""

from collections.abc import Mapping

from trainium_core.plan import Plan
from trainium_core.plan.values import PlanValues
from trainium_core.plan.warnings import Warnings, merged, node_warnings, route_warnings


def fleet_warnings(values: PlanValues) -> Warnings:
    """Warnings about a fleet, of a plan or with its own network."""
    yield from node_warnings(values)
    if values.pilot.ends is None and values.capacity != "capacity-block":
        yield "ends", _without_end(values)
    if values.pilot.idle_minutes is not None and values.capacity == "reservation":
        yield "idle_minutes", "a reservation is billed while its nodes sleep: cancel it when you no longer need it"


def cluster_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    return merged([*fleet_warnings(plan), *route_warnings(plan), *_egress_warnings(plan)])


def _egress_warnings(plan: Plan) -> Warnings:
    egress = plan.network.effective_egress
    if egress == "none":
        yield (
            "egress",
            "with trn:egress=none nodes reach only S3: no sessions, no packages; everything a job needs must be "
            "in the image or in S3",
        )
    if plan.setup_script is not None and egress in ("vpc-endpoints", "none"):
        yield (
            "setup_script",
            f"with trn:egress={egress} the setup script has no internet access: fetch what it needs from S3, "
            "or choose trn:egress=nat-gateway",
        )


def _without_end(values: PlanValues) -> str:
    """What happens to nodes without an end. A reservation is billed whether its nodes run or not."""
    stay = "run" if values.capacity == "reservation" else "are billed"
    ends = ["`trn sleep` runs"]
    if values.pilot.idle_minutes is not None:
        ends.append(f"they are unused for {values.pilot.idle_minutes} minutes")
    if values.pilot.stops_at_budget:
        ends.append("the budget is spent")
    return (
        f"no date ends the pilot: {values.nodes} x {values.instance_type} {stay} until {', '.join(ends)} or the stack "
        "is destroyed; set an end, such as 5d"
    )
