"""The end of a pilot, its budget, idle limit and notices."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from aws_cdk import Duration, Stack, Token
from constructs import Construct

from trainium_cdk.cdk_types import Topic
from trainium_cdk.checks import (
    check,
    check_known,
    check_same_account,
    check_same_region,
    form,
    refuse,
    whole_duration,
)
from trainium_cdk.fleet.capacity import Capacity
from trainium_core.naming import ENDS_OUTPUT
from trainium_core.plan.rules.forms import range_problems
from trainium_core.plan.rules.pilot import budget_in_region, idle_limit_without_block, lifetime, requires_field
from trainium_core.plan.settings.pilot import BudgetAction, EndsAction, PilotSettings
from trainium_runtime.pilot_end import Deadline


@dataclass(frozen=True)
class PilotEnd:
    """When a pilot ends, and what happens then: `after(lifetime)` or `at(time)`.

    Attributes:
        deadline: A time, or a duration from the first deployment, or from the start of a Capacity Block that begins
            later.
        action: At the end, `sleep` terminates the nodes, `destroy` deletes the stack. None: sleep, or destroy if nodes
            cannot sleep.
        warning_hours: Hours from the warning to the end.

    Raises:
        PropsError: A value is invalid.

    Example:

        night = PilotEnd.after(Duration.hours(8))
        fortnight = PilotEnd.after(Duration.days(14), action="destroy", warn_before=Duration.days(2))
        fixed = PilotEnd.at(datetime(2030, 1, 1, 18, tzinfo=timezone.utc))
    """

    deadline: Deadline
    action: EndsAction | None
    warning_hours: int

    def __post_init__(self) -> None:
        after = self.deadline.after
        check(
            "PilotEnd",
            () if after is None else lifetime(after, field="lifetime"),
            form("ends_action", self.action, field="action"),
            range_problems("warning_hours", self.warning_hours, "hours", field="warn_before"),
        )

    @staticmethod
    def after(
        lifetime: Duration, *, action: EndsAction | None = None, warn_before: Duration | None = None
    ) -> "PilotEnd":
        """An end at a time after the first deployment.

        Args:
            lifetime: Whole hours from the first deployment, up to 366 days.
            action: At the end, `sleep` terminates the nodes, `destroy` deletes the stack. Default: sleep.
            warn_before: Whole hours from the warning to the end, up to 336. If the pilot is shorter than twice this
                time, the warning is sent halfway. Default: 24 hours.

        Raises:
            PropsError: A value is invalid.
        """
        hours = whole_duration("PilotEnd", "lifetime", lifetime, "hours")
        return PilotEnd(Deadline(after=timedelta(hours=hours)), action, _warning_hours(warn_before))

    @staticmethod
    def at(time: datetime, *, action: EndsAction | None = None, warn_before: Duration | None = None) -> "PilotEnd":
        """An end at a time.

        Args:
            time: The end, with a time zone.
            action: At the end, `sleep` terminates the nodes, `destroy` deletes the stack. Default: sleep.
            warn_before: Whole hours from the warning to the end, up to 336. If the pilot is shorter than twice this
                time, the warning is sent halfway. Default: 24 hours.

        Raises:
            PropsError: A value is invalid.
        """
        if time.tzinfo is None:
            fix = "pass tzinfo, such as timezone.utc"
            raise refuse("PilotEnd", "time", time, allowed="a datetime with its time zone", fix=fix)
        return PilotEnd(Deadline(at=time.replace(microsecond=0)), action, _warning_hours(warn_before))


def _warning_hours(warn_before: Duration | None) -> int:
    if warn_before is None:
        return PilotSettings.warning_hours
    return whole_duration("PilotEnd", "warn_before", warn_before, "hours")


@dataclass(frozen=True)
class Budget:
    """A budget of a cluster for a calendar year: `usd(amount)`.

    Attributes:
        amount: The budget in US dollars.
        action: `stop` terminates the nodes once the budget is spent, `notify` only warns.

    Raises:
        PropsError: A value is invalid.

    Example:

        warning = Budget.usd(1000)
        limit = Budget.usd(1000, stop=True)
    """

    amount: int
    action: BudgetAction

    def __post_init__(self) -> None:
        check_known("Budget", "amount", self.amount, why="it is converted to text at synthesis")
        check(
            "Budget",
            form("budget_usd", self.amount, field="amount"),
            form("budget_action", self.action, field="action"),
        )

    @staticmethod
    def usd(amount: int, *, stop: bool = False) -> "Budget":
        """A budget in US dollars.

        Args:
            amount: Whole US dollars for a calendar year.
            stop: Whether the nodes are terminated once the budget is spent. Default: False, it only warns.

        Raises:
            PropsError: The amount is invalid, or a CDK token.
        """
        return Budget(amount, "stop" if stop else "notify")


@dataclass(frozen=True, kw_only=True)
class PilotProps:
    """The end, budget, idle limit and notices of a pilot.

    Attributes:
        end: The end of the pilot. Default: none.
        budget: The budget. Default: none.
        idle_minutes: Minutes after which unused nodes are terminated. Default: no limit.
        notify_email: Address that is subscribed to the pilot's own topic. Default: none.
        notices: Topic for notices and alarms. Default: the pilot's own topic.
        job_notices: Whether it gets a message at the end of each job. Default: False.
        capacity_block_id: The Capacity Block that the nodes run in. Default: none.
    """

    end: PilotEnd | None = None
    budget: Budget | None = None
    idle_minutes: int | None = None
    notify_email: str | None = None
    notices: Topic | None = None
    job_notices: bool = False
    capacity_block_id: str | None = None

    @property
    def settings(self) -> dict[str, object]:
        """The values by the keys of their settings, without the address."""
        settings: dict[str, object] = {"idle_minutes": self.idle_minutes, "job_notices": self.job_notices}
        if end := self.end:
            settings |= {
                "ends": str(end.deadline),
                "ends_action": end.action,
                "warning_hours": end.warning_hours,
            }
        if self.budget:
            settings |= {"budget_usd": self.budget.amount, "budget_action": self.budget.action}
        return settings

    @property
    def stops_at_budget(self) -> bool:
        return self.budget is not None and self.budget.action == "stop"

    @property
    def needs_schedule(self) -> bool:
        """Whether the controller stops and launches the nodes of a group on a schedule."""
        by_itself = self.end is not None or self.stops_at_budget or self.idle_minutes is not None
        return by_itself or self.capacity_block_id is not None

    @property
    def is_needed(self) -> bool:
        """Whether a fleet needs the construct of a pilot."""
        return self.needs_schedule or self.budget is not None or self.job_notices

    def outputs(self) -> Iterator[tuple[str, str, str]]:
        """Stack outputs with the end and the idle limit, if there are any. `trn list` reads the end."""
        if self.end is not None:
            meaning = "When the pilot ends: an instant, or hours after the first deployment or a later Capacity Block"
            yield ENDS_OUTPUT, meaning, str(self.end.deadline)
        if self.idle_minutes is not None:
            meaning = "Minutes after which nodes without a job and without a NeuronCore in use are terminated"
            yield "IdleMinutes", meaning, str(self.idle_minutes)


def checked_pilot(
    construct: Construct,
    *,
    cluster_name: str,
    end: PilotEnd | None,
    budget: Budget | None,
    idle_limit: Duration | None,
    notify_email: str | None,
    notices: Topic | None,
    job_notices: bool,
    capacity: Capacity,
) -> PilotProps:
    """The values of a pilot. Raises PropsError for values that do not fit together, the stack or its region."""
    minutes = None if idle_limit is None else whole_duration(construct, "idle_limit", idle_limit, "minutes")
    pilot = PilotProps(
        end=end,
        budget=budget,
        idle_minutes=minutes,
        notify_email=notify_email,
        notices=notices,
        job_notices=job_notices,
        capacity_block_id=capacity.block_id,
    )
    region, without = Stack.of(construct).region, "end, budget, idle_limit, job_notices or a Capacity Block"
    check(
        construct,
        *(
            requires_field(value, field=field, without=without)
            for field, value in (("notify_email", notify_email), ("notices", notices and notices.node.path))
            if value and not pilot.is_needed
        ),
        () if minutes is None else range_problems("idle_minutes", minutes, "minutes", field="idle_limit"),
        idle_limit_without_block(minutes, capacity.kind, field="idle_limit", capacity_field="capacity"),
        form("notify_email", notify_email),
        budget_in_region(budget and budget.amount, region, cluster_name, field="budget")
        if not Token.is_unresolved(region)
        else (),
    )
    if notices is not None:
        _check_topic(construct, notices, notify_email)
    return pilot


def _check_topic(construct: Construct, notices: Topic, notify_email: str | None) -> None:
    if notify_email is not None:
        fix = "remove it, and call notices.add_subscription(subscriptions.EmailSubscription(...))"
        raise refuse(construct, "notify_email", notify_email, allowed="no address together with notices", fix=fix)
    if notices.fifo:
        allowed = "a standard topic: AWS Budgets and CloudWatch alarms do not publish to FIFO topics"
        raise refuse(construct, "notices", notices, allowed=allowed, fix="create the topic without fifo=True")
    check_same_account(construct, "notices", notices, what="a topic")
    check_same_region(construct, "notices", notices, what="a topic")
