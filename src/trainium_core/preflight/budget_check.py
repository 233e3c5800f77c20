"""Whether AWS Budgets is readable for the signed-in user, which suggests that the plan's budget can be created.

CloudFormation's role creates the budget, and its permissions may differ.
"""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult


def check_budget(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check access to AWS Budgets; None for a plan without a budget."""
    if plan.pilot.budget_usd is None:
        return None
    number = account.identity().account
    if not account.budgets.enabled(number):
        found = f"account {number} cannot have budgets: its payer has not enabled them"
        fix = "have the management account enable AWS Budgets, for example by creating a first budget, and wait "
        fix += "up to a day; or remove trn:budget_usd"
        return CheckResult(outcome="fail", found=found, fix=fix)
    found = "AWS Budgets is readable; whether the deployment role may create a budget is not checked"
    return CheckResult(outcome="pass", found=found)
