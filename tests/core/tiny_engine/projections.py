"""What the tiny engine answers about a plan."""

from collections.abc import Iterator

from trainium_core.costs.items import CostItem, cost_item
from trainium_core.engines.projections import Projections
from trainium_core.engines.tiny.settings import TinySettings
from trainium_core.plan import Plan


def _cost_items(plan: Plan) -> Iterator[CostItem]:
    size = plan.section(TinySettings).size
    yield cost_item(plan, f"{size} GiB tiny", "gp3-storage", "AWS::Tiny::Disk", "always", size)


PROJECTIONS = Projections(cost_items=_cost_items)
