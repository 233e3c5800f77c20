"""Placement groups that are there already."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class PlacementGroup:
    """`strategy` and `state` are EC2's words, such as cluster and available."""

    name: str
    strategy: str
    state: str


class PlacementGroups(Protocol):
    def placement_group(self, name: str) -> PlacementGroup | None: ...
