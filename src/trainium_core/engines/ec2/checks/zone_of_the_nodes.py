"""The zone that the nodes of a plan go to."""

from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_runtime.errors import UnavailableError


def zone_of_the_nodes(plan: Plan, account: Account) -> str:
    """Its id; the subnet's in a VPC of the user's own. Raises UnavailableError when there is no such subnet."""
    zone_id = plan.zone_id
    if plan.network.subnet_id is not None:
        subnet = account.subnet(plan.network.subnet_id)
        zone_id = subnet.zone_id if subnet else None
    if zone_id is None:
        raise UnavailableError(f"which zone the nodes go to is not known: no {plan.network.subnet_id} in {plan.region}")
    return zone_id
