"""What must hold between the values of a plan: what AWS would refuse minutes later, or would bill for in vain."""

from collections.abc import Collection

from trainium_core.plan.rules.cluster import CLUSTER_RULES
from trainium_core.plan.rules.file_systems import FILE_SYSTEM_RULES
from trainium_core.plan.rules.pilot import PILOT_RULES
from trainium_core.plan.rules.stacks import STACK_RULES
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

_RULES = (*CLUSTER_RULES, *FILE_SYSTEM_RULES, *PILOT_RULES, *STACK_RULES)


def broken_rules(values: PlanValues, unusable: Collection[str] = ()) -> list[Problem]:
    """Every rule the values break, but for those that read an unusable setting or one refused by an earlier rule."""
    refused = set(unusable)
    problems: list[Problem] = []
    for known in _RULES:
        if refused.isdisjoint(known.reads):
            found = list(known.check(values))
            refused |= {problem.key for problem in found}
            problems += found
    return problems
