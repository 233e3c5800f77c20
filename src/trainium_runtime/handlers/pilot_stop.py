"""The notice to all nodes that the clock will stop them."""

from collections.abc import Mapping
from typing import Any

from trainium_runtime.pilot_clock import StopNotice
from trainium_wire.formats import time_text
from trainium_wire.membership import Notice, without

KIND = "pilot-stop"


def stop_event(notice: StopNotice | None) -> dict[str, Any]:
    """The event from the clock to the node reconciler.

    Args:
        notice: The notice to write. None withdraws an earlier notice.
    """
    return {KIND: {"at": time_text(notice.at), "reason": notice.reason} if notice else None}


def updated_notices(current: tuple[Notice, ...], event: Mapping[str, Any]) -> tuple[Notice, ...]:
    """The notices of a membership after the clock's event; any other event does not change them."""
    if KIND not in event:
        return current
    others, stop = without(current, KIND), event[KIND]
    return (*others, Notice(kind=KIND, at=stop["at"], reason=stop["reason"])) if stop else others
