"""A new engine: test_new_engine.py adds this folder, and the lines that name it, to a copy of the core."""

from collections.abc import Iterator, Mapping

from trainium_core.costs.items import CostItem, cost_item
from trainium_core.engines.engine import Engine
from trainium_core.engines.tiny.audited import LISTINGS
from trainium_core.engines.tiny.aws_workloads import WORKLOADS
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_runtime.check_result import CheckResult


def _check(plan: Plan, account: Account) -> CheckResult:
    return CheckResult(outcome="pass", found=f"account {account.identity().account} has {plan.tiny.size}")


def _cost_items(plan: Plan) -> Iterator[CostItem]:
    yield cost_item(plan, f"{plan.tiny.size} GiB tiny", "gp3-storage", "AWS::Tiny::Disk", "always", plan.tiny.size)


def _warnings(plan: Plan) -> Mapping[str, str]:
    return {"tiny_size": f"{plan.tiny.size} GiB is little"}


TINY = Engine(
    key="tiny",
    cost_items=_cost_items,
    warnings=_warnings,
    checks={"tiny": _check},
    listings=LISTINGS,
    workloads=WORKLOADS,
)
