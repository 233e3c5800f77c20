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
    """`connection`: to the embedded AWS with this clock."""

    connection: Connection

    @property
    def now(self) -> datetime:
        return self._ask(None)

    def forward(self, **by: float) -> None:
        """Set it forward by these hours or minutes, and wait for the schedules that become due."""
        self.forward_to(self.now + timedelta(**by))

    def forward_to(self, instant: datetime) -> None:
        self._ask(instant.isoformat())

    def _ask(self, instant: str | None) -> datetime:
        method, body = ("PUT", instant.encode()) if instant else ("GET", b"")
        answer = self.connection.send(method, CLOCK_PATH, body, seconds=120)
        return datetime.fromisoformat(json.loads(answer)["now"])


def reach_end_of_pilot(account: Account, stack: str) -> None:
    """Move the clock from before the end of a pilot of 40 hours to after it, and wait until its stack is deleted.

    The stack exists until then; it may still exist after three minutes, which the caller has to check.
    """

    def exists() -> bool:
        found = account.aws.client("cloudformation").describe_stacks()["Stacks"]
        return stack in [one["StackName"] for one in found]

    clock = MovableClock(connection=account.aws.connection)
    clock.forward(hours=39)
    assert exists()
    clock.forward(hours=2)
    deadline = time.monotonic() + 180
    while exists() and time.monotonic() < deadline:
        time.sleep(0.5)
