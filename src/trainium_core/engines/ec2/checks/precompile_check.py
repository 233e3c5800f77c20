"""Whether `trn precompile` can launch its host: the zone offers the host's type, and the quota has room.

A cluster can be deployed without the host, so failures are warnings.
"""

from dataclasses import replace

from trainium_core.engines.ec2.checks.place import node_zone_id
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota_check import check_need
from trainium_runtime.quota_need import QuotaNeed, family_of

_CAPACITY = "on-demand"


def check_precompile(plan: Plan, account: Account) -> CheckResult | None:
    """Check zone and quota; None for a plan without a precompile host."""
    kind = plan.cache.precompile_instance_type
    if kind is None:
        return None
    zone = node_zone_id(plan, account)
    if zone not in account.zones_offering(kind):
        fix = "set trn:precompile_instance_type to another type, or leave it out"
        return CheckResult(outcome="warn", found=f"{zone} does not offer {kind}", fix=fix)
    quota = facts()["quotas"]["standard"][_CAPACITY]
    found = check_need(
        QuotaNeed(
            code=quota["code"],
            name=quota["name"],
            region=plan.region,
            family=family_of(kind),
            capacity=_CAPACITY,
            cluster=plan.cluster_name,
            nodes=1,
            vcpus_per_node=facts()["precompile"]["hosts"][kind]["vcpus"],
        ),
        account,
    )
    if found.outcome != "fail":
        return found
    fix = f"{found.fix}; or set trn:precompile_instance_type to a smaller type"
    return replace(found, outcome="warn", fix=fix)
