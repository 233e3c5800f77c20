"""What must hold between the settings of a pilot's end and budget."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.plan.values import PlanValues
from trainium_core.problems import SETTING_PREFIX, Problem
from trainium_runtime.naming import CLUSTER_TAG

PILOT_RULES: list[Rule] = []
rule = rule_of(PILOT_RULES)


@rule("ends", "ends_action", "warning_hours")
def what_happens_at_the_end_needs_an_end(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.ends is None:
        yield from _without(plan, "ends_action", needs="ends")
        yield from _without(plan, "warning_hours", needs="ends")


@rule("budget_usd", "budget_action")
def what_happens_at_the_budget_needs_a_budget(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.budget_usd is None:
        yield from _without(plan, "budget_action", needs="budget_usd")


@rule("ends", "budget_usd", "idle_minutes", "notify_email", "capacity")
def mail_is_about_an_end_or_a_budget(plan: PlanValues) -> Iterator[Problem]:
    if not plan.ends_by_itself and plan.pilot.budget_usd is None:
        yield from _without(plan, "notify_email", needs="ends")


@rule("idle_minutes", "capacity")
def a_capacity_block_is_paid_whether_it_is_used_or_not(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.idle_minutes is not None and plan.capacity == "capacity-block":
        yield Problem(
            key="idle_minutes",
            got=plan.pilot.idle_minutes,
            allowed="nothing with trn:capacity=capacity-block, which is paid in advance, used or not",
            fix="remove it",
        )


@rule("budget_usd", "region")
def budgets_can_be_made_from_the_region(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.budget_usd is not None and plan.region in facts()["budgets"]["regions_without_cloudformation_type"]:
        yield Problem(
            key="budget_usd",
            got=plan.pilot.budget_usd,
            allowed=f"nothing in {plan.region}: CloudFormation makes no budgets from there",
            fix=f"remove it, and make a budget on the tag {CLUSTER_TAG}={plan.cluster_name} by hand",
        )


def _without(plan: PlanValues, key: str, *, needs: str) -> Iterator[Problem]:
    got = setting_value(plan, key)
    if got != SETTINGS[key].default:
        name = SETTING_PREFIX + needs
        yield Problem(key=key, got=got, allowed=f"nothing without {name}", fix=f"give {name} too, or remove it")
