"""The vCPUs that instances need of their EC2 quotas."""

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.values import CapacityKind
from trainium_runtime.quota_need import QuotaNeed


def quota_need(plan: Plan) -> QuotaNeed | None:
    """What the instances of a plan need of their quota; None in the same cases as `instances_quota_need`."""
    return instances_quota_need(
        plan.type, plan.nodes, plan.capacity, region=plan.region, cluster_name=plan.cluster_name
    )


def instances_quota_need(
    kind: InstanceType, nodes: int, capacity: CapacityKind, *, region: str, cluster_name: str
) -> QuotaNeed | None:
    """What instances of a type need of their quota.

    None for a Capacity Block, for which it is not documented whether it counts against a quota; for a family without a
    quota in the facts; and for a reservation, which counts against the quota from its creation.
    """
    quotas = facts()["quotas"]
    family = next((name for name in (kind.generation, kind.family) if capacity in quotas.get(name, {})), None)
    if family is None:
        return None
    quota = quotas[family][capacity]
    return QuotaNeed(
        code=quota["code"],
        name=quota["name"],
        region=region,
        family=family,
        capacity=capacity,
        cluster=cluster_name,
        nodes=nodes,
        vcpus_per_node=kind.vcpus,
    )
