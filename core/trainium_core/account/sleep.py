"""A deployed cluster that can be put to sleep."""

from dataclasses import dataclass
from typing import Protocol

from trainium_core.account.stack_events import StackEvents


@dataclass(frozen=True, kw_only=True)
class SleepState:
    """A stack as far as sleep is concerned. `asleep` is None for one that knows no sleep."""

    status: str
    asleep: bool | None
    cluster: str | None


class Sleeper(StackEvents, Protocol):
    def sleep_state(self, stack: str) -> SleepState | None: ...

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        """Begin an update of the stack that changes this and nothing else. Raises OrderRefusedError."""
        ...
