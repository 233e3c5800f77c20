"""What cluster is wanted: the plan, its settings by section, the rules between them, and where they are read from."""

from typing import TYPE_CHECKING

from trainium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from trainium_core.plan.plan import Plan as Plan
    from trainium_core.plan.values import PlanValues as PlanValues

# What needs the settings alone need not wait until all rules between them are imported.
__getattr__ = lazy_names(__name__, {"Plan": "plan", "PlanValues": "values"})
