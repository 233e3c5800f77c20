"""The clock's word that nodes stop soon, as a notice to every node."""

from collections.abc import Mapping
from typing import Any

from trainium_runtime.pilot_clock import StopNotice
from trainium_runtime.roster import Notice, notice_time, without

KIND = "pilot-stop"


def event_of(notice: StopNotice | None) -> dict[str, Any]:
    """What the clock calls the keeper with; None: nodes do not stop soon, or not any more."""
    return {KIND: {"at": notice_time(notice.at), "reason": notice.reason} if notice else None}


def after_a_look(there: tuple[Notice, ...], event: Mapping[str, Any]) -> tuple[Notice, ...]:
    """The notices of a roster, as the clock wants them; another event leaves them as they are."""
    if KIND not in event:
        return there
    others, told = without(there, KIND), event[KIND]
    return (*others, Notice(kind=KIND, at=told["at"], reason=told["reason"])) if told else others
