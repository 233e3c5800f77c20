"""The Auto Scaling groups of the nodes, and the notices that nodes get, such as before a group is emptied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainium_wire.membership import Notice


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """An Auto Scaling group.

    Attributes:
        name: Name of the group.
        wanted: Desired number of instances; 0 for a deleted group.
        instances: Number of instances by EC2's state.
    """

    name: str
    wanted: int
    instances: Mapping[str, int] = field(default_factory=dict[str, int])


class NoticeAccount(Protocol):
    """The requests about groups and notices.

    Reads raise UnavailableError; changes raise RequestRefusedError, and those of notices also UnavailableError, if the
    stack cannot be read.
    """

    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
        """Existing groups, and deleted groups that still have instances. Terminated instances do not count."""
        ...

    def empty_group(self, name: str, *, for_good: bool) -> None:
        """Set the desired and the minimum size to 0. Does nothing if the group does not exist.

        Args:
            name: Name of the group.
            for_good: Whether to set the maximum size to 0 too, so that only a stack update brings nodes back.
        """
        ...

    def notices(self, stack: str) -> Sequence[Notice]:
        """The notices to the nodes of a stack; empty without the stack or a membership."""
        ...

    def announce(self, stack: str, notice: Notice) -> bool:
        """Notify the nodes. Replaces an earlier notice of the same kind. Returns False without a membership."""
        ...

    def withdraw(self, stack: str, kind: str) -> None:
        """Remove the notice of this kind, if there is one."""
        ...
