"""The clock of an embedded AWS, in the hands of a test."""

import json
import urllib.request
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainium_local.clock_control import CLOCK_PATH


@dataclass(frozen=True, kw_only=True)
class MovableClock:
    """`endpoint`: of the embedded AWS whose clock it is."""

    endpoint: str

    @property
    def now(self) -> datetime:
        return self._ask(None)

    def forward(self, **by: float) -> None:
        """Put it forward by so many hours or minutes, and wait for the schedules that fall due."""
        self.forward_to(self.now + timedelta(**by))

    def forward_to(self, instant: datetime) -> None:
        self._ask(instant.isoformat())

    def _ask(self, instant: str | None) -> datetime:
        request = urllib.request.Request(
            f"{self.endpoint}{CLOCK_PATH}",
            data=instant.encode() if instant else None,
            method="PUT" if instant else "GET",
            headers={"Content-Type": "text/plain"},
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=120) as answer:
            return datetime.fromisoformat(json.loads(answer.read())["now"])
