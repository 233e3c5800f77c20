"""What cluster is wanted: the plan, its settings by section, the rules between them, and where they are read from."""

from trainium_core.plan.plan import Plan as Plan
from trainium_core.plan.values import PlanValues as PlanValues
