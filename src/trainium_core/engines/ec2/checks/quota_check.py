"""Whether the quota for the plan's instances has room."""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota_check import check_need


def check_quota(plan: Plan, account: AwsAccount) -> CheckResult:
    if plan.capacity == "reservation":
        return CheckResult(outcome="pass", found="reserved capacity counted against the quota when it was reserved")
    if plan.capacity == "capacity-block":
        return CheckResult(
            outcome="warn", found="AWS does not document whether a Capacity Block counts against the on-demand quota"
        )
    need = quota_need(plan)
    if need is None:
        return CheckResult(
            outcome="unknown", found=f"AWS does not document which quota {plan.instance_type} counts against"
        )
    return check_need(need, account.quotas)
