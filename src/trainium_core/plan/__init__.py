"""The plan: its settings by section, the rules between them, and how they are read and written."""

from trainium_core.plan.plan import Plan as Plan
from trainium_core.plan.values import PlanValues as PlanValues
