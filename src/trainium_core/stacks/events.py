"""The events of a stack, and following them until a change has ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_core.polling import Polling


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


class StackEvents(Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        """The events after the event with the ID `after`, or all for None, oldest first; empty without the stack."""
        ...

    def last_event(self, stack: str) -> str | None:
        """The ID of the newest event; None without the stack."""
        ...


def follow(
    account: StackEvents,
    stack: str,
    *,
    after: str | None,
    on_progress: Callable[[str], None],
    pause: Callable[[float], None],
) -> Sequence[StackEvent]:
    """Wait until a stack has reached a final status.

    Args:
        account: Reads the events.
        stack: Name or ID of the stack.
        after: ID of the last event before the change; None for all events.
        on_progress: Called with messages about the progress.
        pause: Waits for a number of seconds.

    Returns:
        The events after `after`, oldest first.

    Raises:
        UnavailableError: Too many polls in a row have failed.
    """
    polling = Polling(pause)
    while True:
        events: Sequence[StackEvent] = ()
        with polling.poll(on_progress):
            events = account.stack_events(stack, after=after)
        if events:
            last = events[-1]
            if last.of_stack and not last.status.endswith("_IN_PROGRESS"):
                return events
            on_progress(_current_resource(events))
        polling.wait()


def _current_resource(events: Sequence[StackEvent]) -> str:
    """The status of a resource in progress, or else of the last event."""
    at_work = {event.logical_id: event for event in events if not event.of_stack}
    busy = [event for event in at_work.values() if event.status.endswith("_IN_PROGRESS")]
    shown = (busy or list(events))[-1]
    return f"{shown.status} {shown.kind} {shown.logical_id}"
