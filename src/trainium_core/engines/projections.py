"""What an engine derives from a plan: its costs, and its checks of the account."""

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from trainium_core.costs.items import CostItem
from trainium_core.engines.engine import Engine
from trainium_core.engines.registry import ENGINES
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult

if TYPE_CHECKING:  # costs need none of what a check may ask
    from trainium_core.preflight.account import Account

Check = Callable[[Plan, "Account"], CheckResult | None]
"""The result of a check; None when the plan has nothing for it to check."""


def _no_notes(_plan: Plan) -> Iterable[str]:
    return ()


def _always(_plan: Plan) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Projections:
    """Each is only asked of a plan whose trn:stacks has the engine.

    cost_items: what AWS bills its stack for. cost_notes: what one must know of that estimate.
    needs_vpc: whether its stack is in a VPC, a new one unless trn:vpc_id is given.
    """

    cost_items: Callable[[Plan], Iterable[CostItem]]
    cost_notes: Callable[[Plan], Iterable[str]] = _no_notes
    needs_vpc: Callable[[Plan], bool] = _always


def projections(engine: Engine) -> Projections:
    """Those of an engine. Raises TypeError if what it names is something else."""
    found = pkgutil.resolve_name(engine.projections)
    if not isinstance(found, Projections):
        raise TypeError(f"{engine.projections} is {found!r}, not Projections")
    return found


def projections_for(plan: Plan) -> Mapping[str, Projections]:
    """Those of the engines in trn:stacks, in the plan's order."""
    return {key: projections(ENGINES[key]) for key in plan.stacks}


def checks(engine: Engine) -> Mapping[str, Check]:
    """What preflight asks about a plan whose trn:stacks has the engine, by name."""
    return {} if engine.checks is None else cast(Mapping[str, Check], pkgutil.resolve_name(engine.checks))
