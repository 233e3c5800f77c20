"""Rules for the stacks of the app."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.plan.values import STACKS, PlanValues
from trainium_core.problems import Problem

STACK_RULES: list[Rule] = []
rule = rule_of(STACK_RULES)


@rule("stacks")
def stacks_are_not_empty(plan: PlanValues) -> Iterator[Problem]:
    if not plan.stacks:
        fix = f"name one of {', '.join(STACKS)}, or leave the setting out"
        yield Problem(key="stacks", got="", allowed=SETTINGS["stacks"].form.allowed, fix=fix)
