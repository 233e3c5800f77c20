"""What instances need of the account's EC2 quotas."""

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.values import CapacityKind
from trainium_runtime.quota_need import QuotaNeed


def quota_need(plan: Plan) -> QuotaNeed | None:
    """What the plan takes of the quota its instances count against; None as instances_quota_need()."""
    return instances_quota_need(
        plan.type, plan.nodes, plan.capacity, region=plan.region, cluster_name=plan.cluster_name
    )


def instances_quota_need(
    kind: InstanceType, nodes: int, capacity: CapacityKind, *, region: str, cluster_name: str
) -> QuotaNeed | None:
    """What so many instances of a type take of the quota they count against.

    None for a Capacity Block (no source says whether it counts against a quota), for a family whose quota is not among
    the facts, and for a reservation: on-demand capacity counted when it was reserved, its instances need nothing more.
    """
    quota = facts()["quotas"].get(kind.family, {}).get(capacity)
    if quota is None:
        return None
    return QuotaNeed(
        code=quota["code"],
        name=quota["name"],
        region=region,
        family=kind.family,
        capacity=capacity,
        cluster=cluster_name,
        nodes=nodes,
        vcpus_per_node=kind.vcpus,
    )
