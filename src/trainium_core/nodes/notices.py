"""Notices in the membership, which every node reads: when the nodes end, and why."""

from collections.abc import Sequence
from typing import Protocol

from trainium_core.nodes.groups import NodeGroups
from trainium_wire.membership import Notice


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
