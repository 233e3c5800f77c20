"""What preflight asks for the tiny engine."""

from trainium_core.engines.tiny.settings import TinySettings
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_runtime.check_result import CheckResult


def _check(plan: Plan, account: Account) -> CheckResult:
    return CheckResult(
        outcome="pass", found=f"account {account.identity().account} has {plan.section(TinySettings).size}"
    )


CHECKS = {"tiny": _check}
