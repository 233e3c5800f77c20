"""A deployed cluster that can be put to sleep."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.stacks.events import StackEvents


@dataclass(frozen=True, kw_only=True)
class SleepState:
    """A stack as far as sleep is concerned. `asleep` is None for one without the switch, such as of an app of
    one's own: its nodes alone go and come. `created`: when it was.

    `groups`: the Auto Scaling groups of its nodes. `hosts`: that of the host that compiles ahead, if it has one.
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
        """Have the stack begin an update that changes this and nothing else. Raises RequestRefusedError."""
        ...

    def size_group(self, name: str, nodes: int) -> None:
        """Have so many nodes in a group, of a stack that knows no sleep. Raises RequestRefusedError."""
        ...

    def fleet(self, stack: str) -> str | None:
        """The result of the gate of its last deployment; None where the stack has none."""
        ...
