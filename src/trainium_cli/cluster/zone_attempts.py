"""Explains a failed deployment, and repeats a first one in other zones if its zone has no capacity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainium_cli.cdk_program import CdkRun
from trainium_cli.invocation import SELECTING_SETTINGS
from trainium_cli.terminal import echo, say
from trainium_core.aws.network import AwsNetwork
from trainium_core.aws.prices import AwsPrices
from trainium_core.capacity.other_zones import failed_for_capacity, is_undone, other_zones, zone_binding
from trainium_core.costs.estimate import estimate
from trainium_core.plan import Plan
from trainium_core.plan.context import with_settings
from trainium_core.problems import SETTING_PREFIX
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.stacks.deployment_failure import DeploymentFailure, deployment_failure
from trainium_core.stacks.events import stack_status
from trainium_runtime.errors import UnavailableError

BILLED = (
    "its resources are billed: `trn status` shows the progress, `trn deploy` continues afterwards, `trn destroy` "
    "removes them."
)

_REVIEW_IN_PROGRESS = "REVIEW_IN_PROGRESS"
"""A new stack whose change set was not executed."""
_UNKNOWN = "unknown"
_UNCHANGED = "unchanged"


@dataclass(frozen=True, kw_only=True)
class _Failed:
    """What a failed deployment left.

    Attributes:
        failures: The failures by stack.
        statuses: The status of each stack; empty if it does not exist, `unchanged` without new events, or `unknown`.
        unread: Why events could not be read, by stack.
    """

    failures: Mapping[str, DeploymentFailure]
    statuses: Mapping[str, str]
    unread: Mapping[str, UnavailableError]

    @property
    def lacks_capacity(self) -> bool:
        return failed_for_capacity(self.failures.values(), self.statuses)

    def show(self, run: CdkRun) -> None:
        explained = False
        for stack, status in self.statuses.items():
            failure = self.failures.get(stack)
            if stack in self.unread:
                echo(f"\nUnknown why {stack} failed: {self.unread[stack]}", err=True)
            elif failure is not None:
                explained = True
                reasons = "\n".join(f"  {reason}" for reason in failure.reasons)
                echo(f"\n{stack} was not deployed:\n{reasons}\n", err=True)
                echo(failure.summary, err=True)
            elif status.endswith("_IN_PROGRESS") and status != _REVIEW_IN_PROGRESS:
                explained = True
                echo(f"\nThe CDK CLI has ended; {stack} is still in {status}, and {BILLED}", err=True)
            elif status.endswith("_COMPLETE"):
                echo(f"\n{stack} is in {status}.", err=True)
        if not explained:
            echo(f"\nThe CDK CLI ended before everything was deployed.\n{run.output_tail}".rstrip(), err=True)


class ZoneAttempts:
    """The zones in which a plan is deployed for the first time.

    Args:
        plan: The plan of the first attempt.
        account: Reads the events.
        cdk_json: File with the settings of the plan.
        overrides: Settings of -c, as KEY=VALUE.
    """

    def __init__(self, plan: Plan, account: AwsStackEvents, cdk_json: Path, *, overrides: Sequence[str]) -> None:
        self._plan, self._account, self._cdk_json, self._overrides = plan, account, cdk_json, overrides

    def after(self, run: CdkRun, other_zone: CdkRun, before: Mapping[str, str | None]) -> bool:
        """Explain a failed deployment, or repeat it in other zones if it was the first one and failed for capacity.

        A zone is written to cdk.json before it is tried, because an interrupted deployment continues there. It is
        removed if all attempts fail and leave nothing.

        Args:
            run: The failed deployment.
            other_zone: Deploys the plan in the zone of cdk.json.
            before: The last event of each stack before the deployment; None without the stack.

        Returns:
            Whether a deployment succeeded.
        """
        original, tried = self._cdk_json.read_text(encoding="utf-8"), [self._plan.zone_id or ""]
        while True:
            failed = self._read(before)
            zone, why_none = self._next_zone(tried) if failed.lacks_capacity else (None, "")
            if zone is None:
                failed.show(run)
                if why_none:
                    echo(why_none, err=True)
                if len(tried) > 1 and is_undone(failed.statuses):
                    self._cdk_json.write_text(original, encoding="utf-8")
                return False
            at_zone = self._plan.but(availability_zone_id=zone)
            hour = estimate(at_zone, aws=AwsPrices(self._plan.region)).running_hour
            say(f"\n{tried[-1]} has no capacity for {self._nodes}: the deployment was rolled back.")
            say(f"Trying {zone}, at {hour} per hour; {self._cdk_json.name} gets it as trn:availability_zone_id.")
            before = {stack: self._account.last_event(stack) for stack in before}
            self._cdk_json.write_text(with_settings(original, {"availability_zone_id": zone}), encoding="utf-8")
            tried.append(zone)
            run = other_zone
            run.output_lines.clear()
            if run.with_progress() == 0:
                return True

    @property
    def _nodes(self) -> str:
        return f"{self._plan.nodes} x {self._plan.instance_type}"

    def _read(self, before: Mapping[str, str | None]) -> _Failed:
        failures: dict[str, DeploymentFailure] = {}
        statuses: dict[str, str] = {}
        unread: dict[str, UnavailableError] = {}
        for stack, last in before.items():
            try:
                events = self._account.stack_events(stack, after=last)
            except UnavailableError as error:
                unread[stack], statuses[stack] = error, _UNKNOWN
                continue
            statuses[stack] = stack_status(events) or (_UNCHANGED if last else "")
            if (failure := deployment_failure(events)) is not None:
                failures[stack] = failure
        return _Failed(failures=failures, statuses=statuses, unread=unread)

    def _next_zone(self, tried: Sequence[str]) -> tuple[str | None, str]:
        """The next zone, or None and why there is none."""
        plan = self._plan
        elsewhere = [
            o for o in self._overrides if o.partition("=")[0].removeprefix(SETTING_PREFIX) in SELECTING_SETTINGS
        ]
        if binding := zone_binding(plan):
            return None, f"No other zone was tried: {binding}."
        if elsewhere:
            return None, f"No other zone was tried: cdk.json cannot store a zone for -c {elsewhere[0]}."
        try:
            offering = AwsNetwork(plan.region).zones_offering(plan.instance_type)
        except UnavailableError as error:
            return None, f"No other zone was tried: unknown which offer {plan.instance_type}: {error}"
        left = other_zones(plan, offering, tried=tried)
        if left:
            return left[0], ""
        return (
            None,
            f"Zones of {plan.region} that offer {plan.instance_type}, all without capacity: {', '.join(tried)}.",
        )
