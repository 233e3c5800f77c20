"""What a plan needs of the account's EC2 quotas: arithmetic only, no calls."""

from dataclasses import dataclass

from trainium_core.facts import facts
from trainium_core.plan import Plan


@dataclass(frozen=True, kw_only=True)
class QuotaNeed:
    """vCPUs that a plan takes of one quota in its region."""

    code: str
    name: str
    vcpus: int


def quota_need(plan: Plan) -> QuotaNeed | None:
    """What the plan takes of the quota its instances count against.

    None for a Capacity Block: no source says whether it counts against a quota. A reservation of on-demand capacity
    counted when it was made, so its instances need nothing more.
    """
    if plan.capacity in ("capacity-block", "reservation"):
        return None
    quota = facts()["quotas"][plan.type.family][plan.capacity]
    return QuotaNeed(code=quota["code"], name=quota["name"], vcpus=plan.nodes * plan.type.vcpus)
