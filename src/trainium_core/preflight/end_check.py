"""Whether the pilot ends long enough after its deployment."""

from datetime import UTC, datetime, timedelta

from trainium_core.aws.account import AwsAccount
from trainium_core.engines.registry import ENGINES
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import LATER, minute_text, read_pilot_end
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_runtime.check_result import CheckResult

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
    # Only in a Capacity Block, the nodes wait for the start.
    ends = end.instant(deployed or now, begins if plan.capacity == CAPACITY_BLOCK else None)
    left = ends - now
    if left <= timedelta():
        engines = [ENGINES[key] for key in plan.stacks if ENGINES[key].ends_with_pilot]
        actions = {plan.pilot.action_at_end(can_sleep=engine.can_sleep) for engine in engines}
        what = " and ".join(_AFTER_THE_END[action] for action in sorted(actions, reverse=True))
        return CheckResult(outcome="fail", found=f"the pilot ended at {minute_text(ends)}: {what}", fix=LATER)
    found = f"the pilot ends at {minute_text(ends)}, {left / timedelta(hours=1):.1f} h from now"
    least = timedelta(minutes=plan.node.timeout_minutes)
    needed = f"{plan.node.timeout_minutes} minutes for the nodes to start"
    if begins is not None and begins > now:
        found = f"{found}; {plan.reservation_id} begins at {minute_text(begins)}"
        if ends - begins < least:
            fix = f"set trn:ends to a time later than {minute_text(begins + least)}"
            return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)
    elif left < least:
        return CheckResult(outcome="warn", found=found, needed=needed, fix=LATER)
    return CheckResult(outcome="pass", found=found)
