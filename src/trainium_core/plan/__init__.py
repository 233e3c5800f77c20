"""The plan: its settings by section, the rules between settings, and reading and writing of settings."""

from trainium_core.plan.plan import Plan as Plan
from trainium_core.plan.values import PlanValues as PlanValues
