"""Whether `trn precompile` could launch its host: the type in the zone of the nodes, and room in its own quota.

A cluster can be deployed without: what is missing is a warning.
"""

from dataclasses import replace

from trainium_core.engines.ec2.checks.place import zone_of_the_nodes
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota_check import check_need
from trainium_runtime.quota_need import QuotaNeed, family_of

_CAPACITY = "on-demand"


def check_precompile(plan: Plan, account: Account) -> CheckResult | None:
    """None for a plan without a host."""
    kind = plan.cache.precompile_instance_type
    if kind is None:
        return None
    zone = zone_of_the_nodes(plan, account)
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
    fix = f"ask Service Quotas for more of {quota['code']}, or set trn:precompile_instance_type to a smaller type"
    return replace(found, outcome="warn", fix=fix)
