"""Whether the pilot ends long enough after its deployment."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainium_core.aws.account import AwsAccount
from trainium_core.engines.registry import ENGINES
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import LATER, minute_text, read_pilot_end
from trainium_runtime.check_result import CheckResult
from trainium_runtime.pilot_end import Deadline

_AFTER_THE_END = {"sleep": "no nodes would be launched", "destroy": "the stack would be deleted"}


def check_end(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the end; None for a plan without an end, or only with training jobs, which have their own time limits."""
    stacks = [plan.stack_names[key] for key in plan.stacks if ENGINES[key].ends_with_pilot]
    if plan.pilot.ends is None or not stacks:
        return None
    reservation = account.capacity.reservation(plan.reservation_id) if plan.reservation_id else None
    begins = reservation.start if reservation else None
    if read_pilot_end(plan.pilot.ends).at is not None:
        return judge_end(plan, deployed=None, begins=begins, now=datetime.now(UTC))
    created = [stack.created for stack in map(account.stacks.deployed_stack, stacks) if stack is not None]
    return judge_end(plan, deployed=min(created, default=None), begins=begins, now=datetime.now(UTC))


def judge_end(plan: Plan, *, deployed: datetime | None, now: datetime, begins: datetime | None = None) -> CheckResult:
    """Check an end.

    Args:
        plan: A plan with an end.
        deployed: Time of the first deployment; None before the first deployment, or if the end is a date.
        now: The current time.
        begins: The start of the nodes' Capacity Block or reservation; None without one.
    """
    end = read_pilot_end(plan.pilot.ends or "")
    ends = end.instant(deployed or now)
    left = ends - now
    if left <= timedelta():
        engines = [ENGINES[key] for key in plan.stacks if ENGINES[key].ends_with_pilot]
        actions = {plan.pilot.action_at_end(can_sleep=engine.can_sleep) for engine in engines}
        what = " and ".join(_AFTER_THE_END[action] for action in sorted(actions, reverse=True))
        return CheckResult(outcome="fail", found=f"the pilot ended at {minute_text(ends)}: {what}", fix=LATER)
    found = f"the pilot ends at {minute_text(ends)}, {left / timedelta(hours=1):.1f} h from now"
    if begins is not None and begins > now:
        result = _with_a_later_start(plan, end, ends, begins)
        if result is not None:
            return replace(result, found=f"{found}; {plan.reservation_id} begins at {minute_text(begins)}")
    if left < timedelta(minutes=plan.node.timeout_minutes):
        needed = f"{plan.node.timeout_minutes} minutes for the nodes to start"
        return CheckResult(outcome="warn", found=found, needed=needed, fix=LATER)
    return CheckResult(outcome="pass", found=found)


def _with_a_later_start(plan: Plan, end: Deadline, ends: datetime, begins: datetime) -> CheckResult | None:
    """The result for an end that leaves too little of a reservation that has yet to begin; None if it leaves enough."""
    fix = f"set trn:ends to a date and time after {minute_text(begins)}"
    if end.after is not None:
        fix = f"set trn:ends to {minute_text(begins + end.after)}, {plan.pilot.ends} after its start"
    if ends - begins < timedelta(minutes=plan.node.timeout_minutes):
        needed = f"{plan.node.timeout_minutes} minutes for the nodes to start"
        return CheckResult(outcome="fail", found="", needed=needed, fix=fix)
    return CheckResult(outcome="warn", found="", fix=fix) if end.after is not None else None
