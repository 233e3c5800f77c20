"""Whether an existing placement group is a cluster placement group, and available."""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult

_NEEDED = "a cluster placement group that is available"
_ANOTHER = "set trn:placement_group to another, or remove it"


def check_placement(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the placement group; None for a plan that does not name one."""
    name = plan.network.placement_group
    if name is None:
        return None
    group = account.network.placement_group(name)
    if group is None:
        found = f"no placement group {name} in {plan.region}"
        return CheckResult(outcome="fail", found=found, needed=_NEEDED, fix=_ANOTHER)
    if group.strategy != "cluster":
        found = f"{name} is a {group.strategy} placement group"
        return CheckResult(outcome="fail", found=found, needed=_NEEDED, fix=_ANOTHER)
    if group.state != "available":
        fix = "wait until it is available" if group.state == "pending" else _ANOTHER
        return CheckResult(outcome="fail", found=f"{name} is {group.state}", needed=_NEEDED, fix=fix)
    return CheckResult(outcome="pass", found=f"{name} is a cluster placement group, and available")
