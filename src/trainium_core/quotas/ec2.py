"""What a plan needs of the account's EC2 quotas."""

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_runtime.quota_need import QuotaNeed


def quota_need(plan: Plan) -> QuotaNeed | None:
    """What the plan takes of the quota its instances count against.

    None for a Capacity Block (no source says whether it counts against a quota), for a family whose quota is not among
    the facts, and for a reservation: on-demand capacity counted when it was reserved, its instances need nothing more.
    """
    quota = facts()["quotas"].get(plan.type.family, {}).get(plan.capacity)
    if quota is None:
        return None
    return QuotaNeed(
        code=quota["code"],
        name=quota["name"],
        region=plan.region,
        family=plan.type.family,
        capacity=plan.capacity,
        cluster=plan.cluster_name,
        nodes=plan.nodes,
        vcpus_per_node=plan.type.vcpus,
    )
