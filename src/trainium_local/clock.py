"""The clock of the embedded AWS: the machine's, or moved forward on request.

Stacks, Capacity Blocks, launches, schedules and functions go by it; what moto dates goes by the machine's.
"""

from datetime import UTC, datetime, timedelta

_ahead = [timedelta()]


class ClockBackwardsError(ValueError):
    """A clock is only ever put forward: what has happened has happened."""


def now() -> datetime:
    return datetime.now(UTC) + _ahead[0]


def seconds_ahead() -> float:
    """By how much it is ahead of the machine's clock."""
    return _ahead[0].total_seconds()


def put_forward_to(instant: datetime) -> None:
    """Raises ClockBackwardsError when that is past already."""
    if instant < now():
        raise ClockBackwardsError(f"it is {now():%Y-%m-%dT%H:%M:%SZ} already")
    _ahead[0] = instant - datetime.now(UTC)
