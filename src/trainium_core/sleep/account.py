"""The AWS requests of sleep and wake, as protocols."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.stacks.events import StackEvents


@dataclass(frozen=True, kw_only=True)
class SleepState:
    """The sleep state of a stack.

    Attributes:
        asleep: None for a stack without a sleep switch, such as another app's, of which only the nodes can be ended.
        created: Time of its creation.
        groups: Auto Scaling groups of its nodes.
        hosts: Auto Scaling group of the precompile host, if it has one.
    """

    status: str
    asleep: bool | None
    cluster: str | None
    created: datetime | None = None
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class SleepAccount(StackEvents, NoticeAccount, Protocol):
    def sleep_state(self, stack: str) -> SleepState | None: ...

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        """Start a stack update that changes only the parameter `Asleep`. Raises RequestRefusedError."""
        ...

    def size_group(self, name: str, nodes: int) -> None:
        """Set the number of nodes of a group, in a stack without a sleep switch. Raises RequestRefusedError."""
        ...

    def fleet(self, stack: str) -> str | None:
        """The result of the fleet gate at its last deployment; None if the stack has none."""
        ...
