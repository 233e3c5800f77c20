"""The Auto Scaling groups of the nodes, and the notice that running jobs get before a group is emptied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainium_wire.membership import Notice


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """An Auto Scaling group. `wanted`: instances it is to have. `instances`: how many there are, by EC2's state."""

    name: str
    wanted: int
    instances: Mapping[str, int] = field(default_factory=dict[str, int])


class NodeGroups(Protocol):
    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
        """The groups that exist, and those that do not but still have instances: terminated ones do not count."""
        ...

    def empty_group(self, name: str, *, for_good: bool) -> None:
        """for_good: also set the maximum to 0, so that only an update of its stack brings nodes back."""
        ...


class NodeNotices(Protocol):
    def notices(self, stack: str) -> Sequence[Notice]:
        """The notices to the nodes of a stack; none where there is no such stack, or no membership."""
        ...

    def announce(self, stack: str, notice: Notice) -> bool:
        """Notify the nodes, in place of an earlier notice of this kind; False where there is no membership for it."""
        ...

    def withdraw(self, stack: str, kind: str) -> None: ...


class NoticeAccount(NodeNotices, NodeGroups, Protocol):
    """All that giving notice asks of an account."""
