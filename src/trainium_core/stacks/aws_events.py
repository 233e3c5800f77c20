"""Reads the events of a stack from CloudFormation, and follows them until a change has ended."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from trainium_core.polling import Polling
from trainium_core.stacks.aws_stacks import AwsStackReader
from trainium_core.stacks.events import StackEvent


class AwsStackEvents(AwsStackReader):
    """Methods raise UnavailableError if a request fails or is denied."""

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        """The events after the event with the ID `after`, or all for None, oldest first; empty without the stack."""
        new = takewhile(lambda event: event["EventId"] != after, self.newest_events(stack))
        return [_event(entry) for entry in new][::-1]

    def last_event(self, stack: str) -> str | None:
        """The ID of the newest event; None without the stack."""
        newest = next(self.newest_events(stack), None)
        return newest["EventId"] if newest else None


def _event(entry: Mapping[str, Any]) -> StackEvent:
    return StackEvent(
        kind=entry["ResourceType"],
        logical_id=entry["LogicalResourceId"],
        status=entry["ResourceStatus"],
        reason=entry.get("ResourceStatusReason", ""),
        of_stack=entry.get("PhysicalResourceId") == entry["StackId"],
        time=entry.get("Timestamp"),
    )


def follow(
    account: AwsStackEvents,
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
