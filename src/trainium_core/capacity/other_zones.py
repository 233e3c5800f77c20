"""The zones that a first deployment tries after one without capacity."""

from collections.abc import Collection, Mapping, Sequence

from trainium_core.plan import Plan
from trainium_core.stacks.deployment_failure import DeploymentFailure

ROLLED_BACK = "ROLLBACK_COMPLETE"
"""The status of a stack whose creation was rolled back. No update has this status."""


def is_undone(statuses: Mapping[str, str]) -> bool:
    """Whether a failed deployment left nothing: each stack was rolled back at its creation, or does not exist.

    Args:
        statuses: The status of each stack of the plan after the deployment; empty if it does not exist.
    """
    return set(statuses.values()) <= {ROLLED_BACK, ""}


def failed_for_capacity(failures: Collection[DeploymentFailure], statuses: Mapping[str, str]) -> bool:
    """Whether a first deployment failed for capacity, and left nothing. An update never stays in this state."""
    return is_undone(statuses) and any(failure.lacks_capacity for failure in failures)


def zone_binding(plan: Plan) -> str:
    """Why the nodes can only be in the zone of the plan; empty if another zone is possible."""
    if plan.reservation_id is not None:
        return f"{plan.reservation_id} is in this zone"
    if plan.network.subnet_id is not None:
        return f"{plan.network.subnet_id} of trn:subnet_id is in this zone: to use another, specify a subnet there"
    if plan.availability_zone_id is not None:
        return "trn:availability_zone_id specifies this zone: remove it, and `trn deploy` tries the others too"
    return ""


def other_zones(plan: Plan, offering: Collection[str], *, tried: Collection[str]) -> Sequence[str]:
    """The zones to try next, by ID, in the order of the catalogue.

    Args:
        plan: The plan.
        offering: The zones of the region that offer the type, according to EC2.
        tried: Zones without capacity.
    """
    known = plan.type.zones.get(plan.region, ())
    zones = dict.fromkeys((*known, *sorted(offering)))
    return [zone for zone in zones if zone in offering and zone not in tried]
