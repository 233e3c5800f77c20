"""Control of the clock of an embedded AWS."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

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
