"""Control of the clock of an embedded AWS."""

import json
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.deploy.account import Account
from trainium_local import CLOCK_PATH
from trainium_local.environment import Connection


@dataclass(frozen=True, kw_only=True)
class MovableClock:
    """The clock of an embedded AWS."""

    connection: Connection

    @property
    def now(self) -> datetime:
        return self._ask(None)

    def forward(self, **by: float) -> None:
        """Set the clock forward, and wait until the schedules that become due have run.

        Args:
            by: Arguments of `timedelta`, such as hours.
        """
        self.forward_to(self.now + timedelta(**by))

    def forward_to(self, instant: datetime) -> None:
        self._ask(instant.isoformat())

    def _ask(self, instant: str | None) -> datetime:
        method, body = ("PUT", instant.encode()) if instant else ("GET", b"")
        answer = self.connection.send(method, CLOCK_PATH, body, seconds=480)
        return datetime.fromisoformat(json.loads(answer)["now"])


def reach_end_of_pilot(account: Account, stack: str) -> None:
    """Move the clock past the end of a pilot of 40 hours, and wait until the stack is deleted.

    Asserts that the stack exists one hour before the end. Waits for eight minutes at most, so the caller must check
    that the stack is deleted.
    """

    def exists() -> bool:
        stacks = account.aws.client("cloudformation").describe_stacks()["Stacks"]
        return stack in [one["StackName"] for one in stacks]

    clock = MovableClock(connection=account.aws.connection)
    clock.forward(hours=39)
    assert exists()
    clock.forward(hours=2)
    deadline = time.monotonic() + 480
    while exists() and time.monotonic() < deadline:
        time.sleep(0.5)
