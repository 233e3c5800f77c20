"""The Auto Scaling groups of the nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


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
        """for_good: nobody can set it up again, but by an update of its stack that changes its maximum."""
        ...
