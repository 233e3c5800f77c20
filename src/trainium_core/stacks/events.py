"""The events of a stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class StackEvent:
    """An event of a resource, or of the stack itself.

    Attributes:
        kind: CloudFormation's type of the resource.
        of_stack: Whether the event is of the stack itself.
    """

    kind: str
    logical_id: str
    status: str
    reason: str = ""
    of_stack: bool = False
    time: datetime | None = None


def stack_status(events: Sequence[StackEvent]) -> str:
    """The status of a stack, from its events, oldest first; empty if no event is of the stack itself."""
    return next((event.status for event in reversed(events) if event.of_stack), "")
