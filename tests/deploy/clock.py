"""The clock of an embedded AWS, in the hands of a test."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainium_local import CLOCK_PATH
from trainium_local.environment import Connection


@dataclass(frozen=True, kw_only=True)
class MovableClock:
    """`connection`: to the embedded AWS whose clock it is."""

    connection: Connection

    @property
    def now(self) -> datetime:
        return self._ask(None)

    def forward(self, **by: float) -> None:
        """Put it forward by so many hours or minutes, and wait for the schedules that fall due."""
        self.forward_to(self.now + timedelta(**by))

    def forward_to(self, instant: datetime) -> None:
        self._ask(instant.isoformat())

    def _ask(self, instant: str | None) -> datetime:
        method, body = ("PUT", instant.encode()) if instant else ("GET", b"")
        answer = self.connection.send(method, CLOCK_PATH, body, seconds=120)
        return datetime.fromisoformat(json.loads(answer)["now"])
