"""Notifies the nodes of their termination, and waits while jobs save their state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trainium_core.nodes.aws_control import AwsNodeControl
from trainium_core.plurals import count
from trainium_core.teardown.steps import StepProgress
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.membership import Notice

DEFAULT_GRACE = timedelta(minutes=2)
"""The default time between the notice and the termination of the nodes; the same as for a spot instance."""

_REMEMBERED = timedelta(hours=1)
_UP = ("pending", "running")


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class NotifyNodes:
    """A step that notifies the nodes of a stack of their termination, and waits until its time or the end of their job.

    Without a job, it waits too: the nodes may run processes that `trn run` did not start.
    A notice of an earlier attempt is used if its time is not later than requested, and at most an hour ago.

    Attributes:
        account: The account.
        stack: Name of the stack of the nodes; None if no stack has nodes.
        groups: Auto Scaling groups of the nodes.
        kind: Name of the notice, such as destroy.
        reason: Reason in the notice.
        grace: Time between notice and termination; 0 to send no notice.
        has_job: Returns whether a job of `trn run` uses the nodes; None if this is unknown.
        now: Returns the current time.
        name: Name of the step.
        ends: Time of the termination; None until the nodes are notified.
        had_job: Whether a job used the nodes before the notice.
    """

    account: AwsNodeControl
    stack: str | None
    groups: Sequence[str]
    kind: str
    reason: str
    grace: timedelta
    has_job: Callable[[], bool | None]
    now: Callable[[], datetime] = utc_now
    name: str = "notice to the nodes"
    ends: datetime | None = field(default=None, init=False)
    had_job: bool = field(default=False, init=False)

    def advance(self) -> StepProgress:
        if self.stack is None:
            return StepProgress(state="done", message="not sent: no stack has nodes")
        if not self.grace:
            return StepProgress(state="done", message="not sent: --grace is 0")
        running = self._running()
        if not running:
            return StepProgress(state="done", message="no node is running")
        self.had_job = self.had_job or self.has_job() is True
        self.ends = self.ends or self._announced_end() or self._announce()
        if self.ends is None:
            return StepProgress(state="done", message="not sent: the membership, which nodes read, does not exist yet")
        left = (self.ends - self.now()).total_seconds()
        notified = f"{count(running, 'node')} notified"
        if left <= 0:
            return StepProgress(state="done", message=f"sent: {notified}, and the time has passed")
        if self.had_job and self.has_job() is False:
            return StepProgress(state="done", message=f"sent: {notified}, and the job has ended")
        message = f"{notified} of termination at {self.ends:%H:%M:%S} UTC, in {left:.0f} s"
        return StepProgress(state="waiting", message=f"{message}; jobs save their state")

    def withdraw(self) -> bool:
        """Withdraw the notice. Returns False if a request fails or is denied."""
        if self.stack is not None and self.ends is not None:
            try:
                self.account.withdraw(self.stack, self.kind)
            except (UnavailableError, RequestRefusedError):
                return False
        return True

    def _running(self) -> int:
        groups = self.account.node_groups(self.groups)
        return sum(number for group in groups for state, number in group.instances.items() if state in _UP)

    def _announced_end(self) -> datetime | None:
        """The time in an earlier notice of this kind, unless that time is long past, or later than requested."""
        assert self.stack is not None
        now = self.now()
        for notice in self.account.notices(self.stack):
            if notice.kind == self.kind:
                ends = datetime.fromisoformat(notice.at)
                return ends if now - _REMEMBERED <= ends <= now + self.grace else None
        return None

    def _announce(self) -> datetime | None:
        assert self.stack is not None
        # Rounded up to whole seconds, as in the membership.
        ends = (self.now() + self.grace + timedelta(seconds=1)).replace(microsecond=0)
        return ends if self.account.announce(self.stack, Notice.of(self.kind, ends, self.reason)) else None
