"""What AWS bills all stacks of trn:stacks for."""

from collections.abc import Iterator

from trainium_core.cost_items import CostItem
from trainium_core.engines.projections import projections_for
from trainium_core.engines.registry import ENGINES
from trainium_core.plan import Plan


def stack_cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The items of every stack; what several are billed for by use is one item."""
    items = [item for engine in projections_for(plan).values() for item in engine.cost_items(plan)]
    by_use = dict.fromkeys(item for item in items if item.billed == "by use")
    return (*(item for item in items if item.billed != "by use"), *by_use) if len(plan.stacks) > 1 else tuple(items)


def stack_cost_notes(plan: Plan) -> Iterator[str]:
    """What one must know of an estimate of the stacks, in the order of the engines."""
    wanted = projections_for(plan)
    for key in ENGINES:
        if key in wanted:
            yield from wanted[key].cost_notes(plan)
