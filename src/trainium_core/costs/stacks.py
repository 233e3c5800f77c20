"""The billed items of a plan's stacks."""

from collections.abc import Iterator

from trainium_core.costs.items import CostItem
from trainium_core.engines.registry import CLUSTER, ENGINES, engines_of
from trainium_core.plan import Plan


def cluster_cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The items of the cluster's stack, even if trn:stacks does not include it."""
    return tuple(CLUSTER.cost_items(plan))


def stack_cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The items of every stack of trn:stacks. Equal items that are billed by use are merged."""
    items = [item for key in plan.stacks for item in ENGINES[key].cost_items(plan)]
    by_use = dict.fromkeys(item for item in items if item.billed == "by use")
    return (*(item for item in items if item.billed != "by use"), *by_use) if len(plan.stacks) > 1 else tuple(items)


def stack_cost_notes(plan: Plan) -> Iterator[str]:
    """Notes on the estimate of the stacks, in the order of the engines."""
    for engine in engines_of(plan):
        yield from engine.cost_notes(plan)
