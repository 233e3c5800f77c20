"""The account and identity that the checks use."""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult


def check_identity(plan: Plan, account: AwsAccount) -> CheckResult:
    identity = account.identity()
    elsewhere = f", answered by {identity.endpoint}, not by AWS" if identity.endpoint else ""
    return CheckResult(
        outcome="pass", found=f"account {identity.account}, region {plan.region}, as {identity.arn}{elsewhere}"
    )
