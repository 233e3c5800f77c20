"""What the tiny engine answers about a plan."""

from collections.abc import Iterator, Mapping

from trainium_core.account import Account
from trainium_core.cost_items import CostItem, cost_item
from trainium_core.engines.projections import Projections
from trainium_core.engines.tiny.settings import TinySettings
from trainium_core.plan import Plan
from trainium_runtime.answer import Answer


def _cost_items(plan: Plan) -> Iterator[CostItem]:
    size = plan.section(TinySettings).size
    yield cost_item(plan, f"{size} GiB tiny", "gp3-storage", "AWS::Tiny::Disk", "always", size)


def _warnings(plan: Plan) -> Mapping[str, str]:
    return {"tiny_size": f"{plan.section(TinySettings).size} GiB are few"}


def _check(plan: Plan, account: Account) -> Answer:
    return Answer(outcome="pass", found=f"account {account.identity().account} has {plan.section(TinySettings).size}")


PROJECTIONS = Projections(cost_items=_cost_items, warnings=_warnings, checks={"tiny": _check})
