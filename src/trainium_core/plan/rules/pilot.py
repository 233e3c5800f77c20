"""Rules for a pilot's end, budget and notifications."""

from collections.abc import Iterator
from datetime import timedelta

from trainium_core.facts import facts
from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.plan.values import CapacityKind, PlanValues
from trainium_core.problems import SETTING_PREFIX, Problem
from trainium_runtime.naming import CLUSTER_TAG

PILOT_RULES: list[Rule] = []
rule = rule_decorator(PILOT_RULES)

LONGEST_LIFETIME = timedelta(days=366)


def lifetime(after: timedelta, *, field: str) -> Iterator[Problem]:
    """The lifetime of a pilot must be positive, and at most LONGEST_LIFETIME."""
    if not timedelta() < after <= LONGEST_LIFETIME:
        allowed = f"more than zero and at most {LONGEST_LIFETIME.days} days"
        yield Problem(key=field, got=str(after), allowed=allowed, fix="choose a duration in this range")


def requires_field(value: object, *, field: str, without: str) -> Iterator[Problem]:
    """The problem of a value that has no effect without another field."""
    fix = f"set {without} too, or remove this value"
    yield Problem(key=field, got=value, allowed=f"no value without {without}", fix=fix)


def budget_in_region(budget: int | None, region: str, cluster_name: str, *, field: str) -> Iterator[Problem]:
    """CloudFormation must support budgets in the region."""
    if budget is not None and region in facts()["budgets"]["regions_without_cloudformation_type"]:
        yield Problem(
            key=field,
            got=budget,
            allowed=f"nothing in {region}: CloudFormation has no budgets there",
            fix=f"remove it, and create a budget on the tag {CLUSTER_TAG}={cluster_name} yourself",
        )


def idle_limit_without_block(
    minutes: int | None, capacity: CapacityKind, *, field: str, capacity_field: str
) -> Iterator[Problem]:
    """Nodes in a Capacity Block must not have an idle limit."""
    if minutes is not None and capacity == "capacity-block":
        allowed = f"no value with {capacity_field}=capacity-block, which is paid in advance, used or not"
        yield Problem(key=field, got=minutes, allowed=allowed, fix="remove it")


def end_without_sleep(plan: PlanValues, stack: str, *, because: str, idle_fix: str) -> Iterator[Problem]:
    """The problems of settings that put a cluster to sleep, for a stack that cannot sleep: it can only be destroyed.

    Args:
        plan: The plan.
        stack: The key of the stack in trn:stacks.
        because: Why the stack cannot sleep, or why sleep would save nothing.
        idle_fix: The fix for trn:idle_minutes.
    """
    if stack not in plan.stacks:
        return
    pilot, reason = plan.pilot, f"with {stack} in trn:stacks: {because}"
    if pilot.ends_action == "sleep":
        fix = "remove trn:ends_action, or set it to destroy"
        yield Problem(key="ends_action", got=pilot.ends_action, allowed=f"destroy, {reason}", fix=fix)
    if pilot.stops_at_budget:
        fix = "set trn:budget_action to notify, or deploy TrnClusterStack instead"
        yield Problem(key="budget_action", got=pilot.budget_action, allowed=f"notify, {reason}", fix=fix)
    if pilot.idle_minutes is not None:
        yield Problem(key="idle_minutes", got=pilot.idle_minutes, allowed=f"nothing {reason}", fix=idle_fix)


END_SETTINGS = ("ends_action", "budget_usd", "budget_action", "idle_minutes")
"""The settings that end_without_sleep() reads."""


@rule("ends", "ends_action", "warning_hours")
def ends_action_requires_end(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.ends is None:
        yield from _without(plan, "ends_action", needs="ends")
        yield from _without(plan, "warning_hours", needs="ends")


@rule("budget_usd", "budget_action")
def budget_action_requires_budget(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.budget_usd is None:
        yield from _without(plan, "budget_action", needs="budget_usd")


@rule("ends", "budget_usd", "idle_minutes", "notify_email", "job_notices", "capacity")
def notify_email_requires_notices(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.notify_email is not None and not plan.needs_topic:
        without = "trn:ends, trn:budget_usd, trn:idle_minutes, trn:job_notices or a Capacity Block"
        yield from requires_field(plan.pilot.notify_email, field="notify_email", without=without)


@rule("job_notices", "stacks")
def job_notices_require_a_controller(plan: PlanValues) -> Iterator[Problem]:
    if plan.pilot.job_notices and not {"cluster", "pcs"} & {*plan.stacks}:
        yield Problem(
            key="job_notices",
            got="on",
            allowed="off without cluster or pcs in trn:stacks: no function sees the ends of jobs",
            fix="remove it; on SageMaker, trn:sagemaker_report_email gets a message at the end of each job",
        )


@rule("idle_minutes", "capacity")
def idle_end_excludes_capacity_block(plan: PlanValues) -> Iterator[Problem]:
    yield from idle_limit_without_block(
        plan.pilot.idle_minutes, plan.capacity, field="idle_minutes", capacity_field="trn:capacity"
    )


@rule("budget_usd", "region")
def region_supports_budgets(plan: PlanValues) -> Iterator[Problem]:
    yield from budget_in_region(plan.pilot.budget_usd, plan.region, plan.cluster_name, field="budget_usd")


def _without(plan: PlanValues, key: str, *, needs: str) -> Iterator[Problem]:
    got = setting_value(plan, key)
    if got != SETTINGS[key].default:
        yield from requires_field(got, field=key, without=SETTING_PREFIX + needs)
