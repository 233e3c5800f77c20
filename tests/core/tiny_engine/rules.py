"""The rules of the tiny engine."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_of(RULES)


@rule("stacks", "tiny_size")
def size_is_small(plan: PlanValues) -> Iterator[Problem]:
    size = plan.tiny.size
    if "tiny" in plan.stacks and size > 9:
        yield Problem(key="tiny_size", got=size, allowed="up to 9", fix="give less")
