"""The events of a stack, and following them until a change has ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_core.polling import Polling


@dataclass(frozen=True, kw_only=True)
class StackEvent:
    """An event of a resource, or of the stack itself (`of_stack`)."""

    kind: str
    logical_id: str
    status: str
    reason: str = ""
    of_stack: bool = False
    time: datetime | None = None


def stack_status(events: Sequence[StackEvent]) -> str:
    """The stack's status from its events, oldest first; empty if they do not contain it."""
    return next((event.status for event in reversed(events) if event.of_stack), "")


class StackEvents(Protocol):
    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        """The events after the one with the ID `after`, oldest first; empty without the stack."""
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
    """The events after `after`, until the stack has reached a final status. Raises UnavailableError."""
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
    """The resource in progress: the last one that has started and not ended."""
    at_work = {event.logical_id: event for event in events if not event.of_stack}
    busy = [event for event in at_work.values() if event.status.endswith("_IN_PROGRESS")]
    shown = (busy or list(events))[-1]
    return f"{shown.status} {shown.kind} {shown.logical_id}"
