"""The cost of the plan. The check never fails; an unknown price, or capacity that AWS may not sell, is a warning."""

from trainium_core.aws.account import AwsAccount
from trainium_core.costs.estimate import Estimate, estimate, sales_warning, stack_cost_items, stack_cost_notes
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult

_OWN_PRICES = "specify your prices in a file (trn:prices); `trn estimate` shows which are missing"


def check_cost(plan: Plan, account: AwsAccount) -> CheckResult:
    estimated = estimate(plan, aws=account.prices, items=stack_cost_items)
    found = (
        f"per hour with nodes running: {estimated.running_hour}; "
        f"per month without nodes: {estimated.asleep_month}; {_where_from(estimated)}"
    )
    found = " ".join([found, *(f"({note})" for note in stack_cost_notes(plan))])
    warning = sales_warning(plan, estimated)
    if warning is not None:
        others = [capacity for capacity in plan.type.usage_classes if capacity != plan.capacity]
        fix = f"set trn:capacity to {' or '.join(others)}" if others else _OWN_PRICES
        return CheckResult(outcome="warn", found=f"{warning}; {found}", fix=fix)
    if estimated.running_hour.unknown:
        return CheckResult(outcome="warn", found=found, fix=_OWN_PRICES)
    return CheckResult(outcome="pass", found=found)


def _where_from(estimated: Estimate) -> str:
    prices = [line.price for line in estimated.lines if line.price]
    origins = {price.origin for price in prices}
    if origins == {"yours"}:
        return "your prices in the file of trn:prices"
    if "snapshot" not in origins:
        yours = "your prices in the file of trn:prices, and " if "yours" in origins else ""
        return f"{yours}list prices, before tax and discounts"
    oldest = min(price.date for price in prices if price.origin == "snapshot")
    why = f", because {estimated.unavailable[0]}" if estimated.unavailable else ""
    partly = "partly " if len(origins) > 1 else ""
    return f"{partly}from a snapshot of list prices, the oldest dated {oldest}{why}"
