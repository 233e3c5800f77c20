"""Whether the quota that the plan's instances count against has room: used + needed <= limit, in vCPUs."""

from collections.abc import Sequence

from trainium_core.account import Account, RunningInstance
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Answer
from trainium_core.quota import QuotaNeed, quota_need


def check_quota(plan: Plan, account: Account) -> Answer:
    if plan.capacity == "reservation":
        return Answer(outcome="pass", found="reserved capacity counted against the quota when it was reserved")
    if plan.capacity == "capacity-block":
        return Answer(
            outcome="warn", found="no source says whether a Capacity Block counts against the on-demand quota"
        )
    need = quota_need(plan)
    if need is None:
        return Answer(outcome="unknown", found=f"no source says which quota {plan.instance_type} counts against")
    return judge_quota(
        need,
        limit=account.quota_limit(need.code),
        running=account.running_instances(plan.type.family),
        capacity=plan.capacity,
        cluster=plan.cluster_name,
    )


def judge_quota(
    need: QuotaNeed, *, limit: float, running: Sequence[RunningInstance], capacity: str, cluster: str
) -> Answer:
    """Whether a quota has room. The cluster's own running nodes are part of the need, so they are not counted twice."""
    others = [instance for instance in running if instance.cluster != cluster]
    used = sum(instance.vcpus for instance in others if instance.capacity == capacity)
    in_blocks = sum(i.vcpus for i in others if i.capacity == "capacity-block") if capacity == "on-demand" else 0
    found = f"{limit - used:g} of {limit:g} vCPUs are free of {need.code}, {need.name}"
    needed = f"{need.vcpus} vCPUs"
    if need.vcpus <= limit - used - in_blocks:
        return Answer(outcome="pass", found=found, needed=needed)
    fix = f"ask Service Quotas for {used + need.vcpus} or more, or for fewer nodes"
    if need.vcpus <= limit - used:
        found += f"; {in_blocks} more run in Capacity Blocks, which may count as well"
        return Answer(outcome="unknown", found=found, needed=needed, fix=fix)
    return Answer(outcome="fail", found=found, needed=needed, fix=fix)
