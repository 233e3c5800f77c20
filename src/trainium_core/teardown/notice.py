"""Notifies the nodes of their end, and waits while jobs save their state."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.teardown.steps import Progress, count
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.membership import Notice

DEFAULT_GRACE = timedelta(minutes=2)
"""The same as for a spot instance. A node reads its notices every 30 seconds."""

_REMEMBERED = timedelta(hours=1)
_UP = ("pending", "running")


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class NotifyNodes:
    """Notifies the nodes of a stack of their end, and waits until then. An earlier notice counts.

    kind: name of the notice, such as destroy. groups: the nodes' Auto Scaling groups.
    """

    account: NoticeAccount
    stack: str | None
    groups: Sequence[str]
    kind: str
    reason: str
    grace: timedelta
    now: Callable[[], datetime] = utc_now
    name: str = "notice to the nodes"
    ends: datetime | None = field(default=None, init=False)

    def advance(self) -> Progress:
        if self.stack is None:
            return Progress(state="done", message="not sent: no stack has nodes")
        if not self.grace:
            return Progress(state="done", message="not sent: --grace is 0")
        running = self._running()
        if not running:
            return Progress(state="done", message="no node runs")
        self.ends = self.ends or self._announced_end() or self._announce()
        if self.ends is None:
            return Progress(state="done", message="none: no node was ever proven, so none can be notified")
        left = (self.ends - self.now()).total_seconds()
        if left <= 0:
            return Progress(state="done", message=f"{count(running, 'node')} were already notified")
        message = f"{count(running, 'node')} notified of their end at {self.ends:%H:%M:%S} UTC, in {left:.0f} s"
        return Progress(state="waiting", message=f"{message}; jobs save their state")

    def withdraw(self) -> None:
        """Withdraw the notice, if possible."""
        if self.stack is not None and self.ends is not None:
            with suppress(UnavailableError, RequestRefusedError):
                self.account.withdraw(self.stack, self.kind)

    def _running(self) -> int:
        groups = self.account.node_groups(self.groups)
        return sum(number for group in groups for state, number in group.instances.items() if state in _UP)

    def _announced_end(self) -> datetime | None:
        """The end in an earlier notice of this kind, unless it is long past or later than the requested one."""
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
