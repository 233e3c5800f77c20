"""The stacks of a pilot that can be extended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class DeployedStack:
    """A stack that is there. `resolved`: what the SSM parameters it was deployed with said then, by their names."""

    created: datetime
    resolved: Mapping[str, str] = field(default_factory=dict[str, str])


class PilotStacks(Protocol):
    """Each method raises UnavailableError without an answer."""

    def deployed_stacks(self, names: Sequence[str]) -> Mapping[str, DeployedStack]:
        """Those of the stacks that are there, by name."""
        ...

    def parameter(self, name: str) -> str | None:
        """What an SSM parameter says now; None when it does not exist."""
        ...
