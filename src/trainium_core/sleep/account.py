"""The sleep state of a stack, and the AWS requests of `trn sleep` and `trn wake` as a protocol."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_core.nodes.groups import NoticeAccount
from trainium_core.stacks.events import StackEvents


@dataclass(frozen=True, kw_only=True)
class SleepState:
    """The sleep state of a stack.

    Attributes:
        status: CloudFormation's status of the stack.
        asleep: Whether the stack sleeps; None without a sleep switch, as in some other apps' stacks.
        cluster: The cluster in the tags of the stack or its resources, if any.
        created: Creation time of the stack.
        groups: Names of the Auto Scaling groups of the nodes.
    """

    status: str
    asleep: bool | None
    cluster: str | None
    created: datetime | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """The readiness of a fleet after a deployment.

    Attributes:
        summary: A sentence without a period.
        verified_nodes: Number of verified nodes: 0 unless all wanted nodes are ready.
    """

    summary: str
    verified_nodes: int


class SleepAccount(StackEvents, NoticeAccount, Protocol):
    def sleep_state(self, stack: str) -> SleepState | None:
        """The state of a stack; None if the stack does not exist. Raises UnavailableError."""
        ...

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        """Start a stack update that changes only the parameter `Asleep`, unless it already has this value.

        Raises RequestRefusedError.
        """
        ...

    def size_group(self, name: str, nodes: int) -> None:
        """Set the desired size of a group. Raises RequestRefusedError."""
        ...

    def readiness(self, stack: str) -> Readiness | None:
        """The readiness of the fleet after the last update of the stack; None without the stack or its outputs.

        Raises UnavailableError.
        """
        ...
