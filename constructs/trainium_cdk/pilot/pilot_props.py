"""The parameters for end, notices and budget of a pilot."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import jsii
from aws_cdk import Duration, Stack, Token
from constructs import Construct, IValidation

from trainium_cdk.checks import check, check_known, form, refuse, whole_duration
from trainium_core.naming import ENDS_OUTPUT
from trainium_core.plan.rules.forms import range_problems
from trainium_core.plan.rules.pilot import budget_in_region, lifetime, requires_field
from trainium_core.plan.settings.pilot import BudgetAction, EndsAction, PilotSettings
from trainium_runtime.pilot_end import PilotEnd


@dataclass(frozen=True, kw_only=True)
class PilotProps:
    """The end, notices and budget of a pilot.

    Attributes:
        end: The end of the pilot. Default: none.
        action: What happens at the end. Default: sleep, or destroy if nodes cannot sleep.
        idle_minutes: Minutes after which unused nodes are terminated. Default: no limit.
        capacity_block_id: The Capacity Block that the nodes run in. Default: none.
    """

    end: PilotEnd | None = None
    action: EndsAction | None = None
    warning_hours: int = PilotSettings.warning_hours
    notify_email: str | None = None
    budget_usd: int | None = None
    budget_action: BudgetAction = PilotSettings.budget_action
    idle_minutes: int | None = None
    capacity_block_id: str | None = None

    @property
    def stops_at_budget(self) -> bool:
        return self.budget_usd is not None and self.budget_action == "stop"

    @property
    def needs_schedule(self) -> bool:
        """Whether the controller stops and launches the nodes of a group on a schedule."""
        by_itself = self.end is not None or self.stops_at_budget or self.idle_minutes is not None
        return by_itself or self.capacity_block_id is not None

    @property
    def is_needed(self) -> bool:
        """Whether a fleet needs the construct of a pilot."""
        return self.needs_schedule or self.budget_usd is not None

    def outputs(self) -> Iterator[tuple[str, str, str]]:
        """Stack outputs with the end and the idle limit, if there are any. `trn list` reads the end."""
        if self.end is not None:
            yield ENDS_OUTPUT, "When the pilot ends: an instant, or hours after the first deployment", str(self.end)
        if self.idle_minutes is not None:
            meaning = "Minutes after which nodes without a job and without a NeuronCore in use are terminated"
            yield "IdleMinutes", meaning, str(self.idle_minutes)


def checked_pilot(
    construct: Construct,
    *,
    cluster_name: str,
    max_lifetime: Duration | None,
    end_time: datetime | None,
    ends_action: EndsAction | None,
    warn_before: Duration | None,
    notify_email: str | None,
    budget_usd: int | None,
    budget_action: BudgetAction | None,
    capacity_block_id: str | None,
) -> PilotProps:
    """The end, notices and budget of a pilot. Raises PropsError for invalid and for contradictory parameters."""
    check_known(construct, "budget_usd", budget_usd, why="it is converted to text at synthesis")
    end, ends = _end(construct, max_lifetime, end_time), "max_lifetime or end_time"
    hours = (
        PilotSettings.warning_hours
        if warn_before is None
        else whole_duration(construct, "warn_before", warn_before, "hours")
    )
    region = Stack.of(construct).region
    pilot = PilotProps(
        end=end,
        action=ends_action,
        warning_hours=hours,
        notify_email=notify_email,
        budget_usd=budget_usd,
        budget_action=budget_action or PilotSettings.budget_action,
        capacity_block_id=capacity_block_id,
    )
    check(
        construct,
        lifetime(end.after, field="max_lifetime") if end is not None and end.after is not None else (),
        requires_field(ends_action, field="ends_action", without=ends) if end is None and ends_action else (),
        requires_field(warn_before, field="warn_before", without=ends) if end is None and warn_before else (),
        requires_field(
            notify_email, field="notify_email", without="max_lifetime, end_time, budget_usd or a Capacity Block"
        )
        if notify_email and not pilot.is_needed
        else (),
        requires_field(budget_action, field="budget_action", without="budget_usd")
        if budget_action and budget_usd is None
        else (),
        range_problems("warning_hours", hours, "hours", field="warn_before"),
        form("ends_action", ends_action),
        form("budget_action", budget_action),
        form("notify_email", notify_email),
        form("budget_usd", budget_usd),
        budget_in_region(budget_usd, region, cluster_name, field="budget_usd")
        if not Token.is_unresolved(region)
        else (),
    )
    if ends_action == "destroy":
        _check_stack_is_deletable(construct)
    return pilot


def _end(construct: Construct, max_lifetime: Duration | None, end_time: datetime | None) -> PilotEnd | None:
    if max_lifetime is not None and end_time is not None:
        fix = "remove end_time or max_lifetime"
        raise refuse(construct, "end_time", end_time, allowed="nothing together with max_lifetime", fix=fix)
    if end_time is not None:
        if end_time.tzinfo is None:
            allowed = "a datetime with its time zone"
            raise refuse(construct, "end_time", end_time, allowed=allowed, fix="pass tzinfo, such as timezone.utc")
        return PilotEnd(at=end_time.replace(microsecond=0))
    if max_lifetime is None:
        return None
    return PilotEnd(after=timedelta(hours=whole_duration(construct, "max_lifetime", max_lifetime, "hours")))


def _check_stack_is_deletable(construct: Construct) -> None:
    stack = Stack.of(construct)
    if stack.nested:
        allowed, fix = "destroy in a stack that is not nested", "put the fleet into a separate stack, or choose sleep"
        raise refuse(construct, "ends_action", "destroy in a nested stack", allowed=allowed, fix=fix)
    validation: Any = _CanBeDeleted(stack)
    construct.node.add_validation(validation)


@jsii.implements(IValidation)
class _CanBeDeleted:
    """Rejects a stack with termination protection, which the app may set after it creates the fleet."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        if not self._stack.termination_protection:
            return []
        return [
            "ends_action: got destroy with termination_protection=True; allowed: destroy in a stack that can be "
            "deleted; fix: remove termination_protection, or choose sleep"
        ]
