"""When an extended pilot ends."""

from datetime import UTC, datetime, timedelta

from trainium_core.plan.pilot_end import read_pilot_end


def extended_end(ends: str, *, by: timedelta, deployed: datetime | None, now: datetime) -> datetime:
    """The new end, in UTC: so much after the end that the setting names, or after now if that has passed.

    deployed: when the cluster was first deployed; None when it is not, and a duration would count from now.
    """
    current = read_pilot_end(ends).instant(deployed or now)
    later = max(current, now) + by
    # Whole minutes, as people write them; never earlier than promised.
    return (later + timedelta(minutes=1) - timedelta(microseconds=1)).astimezone(UTC).replace(second=0, microsecond=0)
