"""The clock of the embedded AWS: the time of this machine, or later.

Stacks and their events, Capacity Reservations and Capacity Blocks, scaling activities, schedules and functions use it.
Other timestamps, such as those of instances and EventBridge events, use the machine's clock.
"""

from datetime import UTC, datetime, timedelta

_ahead = [timedelta()]


class ClockBackwardsError(ValueError):
    """The clock can only be moved forward."""


def now() -> datetime:
    return datetime.now(UTC) + _ahead[0]


def seconds_ahead() -> float:
    """Return by how many seconds this clock is ahead of the machine's."""
    return _ahead[0].total_seconds()


def advance_to(instant: datetime) -> None:
    """Move the clock forward.

    Raises:
        ClockBackwardsError: `instant` is earlier than the time of this clock.
    """
    if instant < now():
        raise ClockBackwardsError(f"the clock is at {now():%Y-%m-%dT%H:%M:%SZ} already; it can only be moved forward")
    _ahead[0] = instant - datetime.now(UTC)
