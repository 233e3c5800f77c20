"""Following what CloudFormation does to a stack until it has ended."""

from collections.abc import Callable, Sequence

from trainium_core.polling import Polling
from trainium_core.stacks.events import StackEvent, StackEvents


def follow(
    account: StackEvents,
    stack: str,
    *,
    after: str | None,
    on_progress: Callable[[str], None],
    pause: Callable[[float], None],
) -> Sequence[StackEvent]:
    """The events after `after`, once the last one says that the stack has come to rest. Raises UnavailableError."""
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
    """The resource that CloudFormation is at: the last one that has begun and not ended."""
    at_work = {event.logical_id: event for event in events if not event.of_stack}
    busy = [event for event in at_work.values() if event.status.endswith("_IN_PROGRESS")]
    shown = (busy or list(events))[-1]
    return f"{shown.status} {shown.kind} {shown.logical_id}"
