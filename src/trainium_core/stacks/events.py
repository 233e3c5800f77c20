"""What CloudFormation says of the course of a stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class StackEvent:
    """An event: of a resource, or of the stack itself (`of_stack`)."""

    event_id: str
    kind: str
    logical_id: str
    status: str
    reason: str = ""
    of_stack: bool = False
    time: datetime | None = None


def stack_status(events: Sequence[StackEvent]) -> str:
    """The status of the stack itself by its events, oldest first; empty where they do not say."""
    return next((event.status for event in reversed(events) if event.of_stack), "")


class StackEvents(Protocol):
    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        """The events of a stack after that with the id `after`, oldest first; none when the stack does not exist."""
        ...

    def last_event(self, stack: str) -> str | None:
        """The id of the newest event; None when there is no such stack."""
        ...
