"""The end of a pilot: a duration from its start, or a date and time with a time zone."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_core.problems import Problem, nearest
from trainium_core.setting_schema.forms import UnreadableError, check_type, read_duration
from trainium_runtime.pilot_end import Deadline, utc_text

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=366)

LATER = "run `trn extend 8h`, or set trn:ends to a later time"
"""The advice for an end that has passed or is too near."""


@dataclass(frozen=True)
class EndForm:
    """A duration such as 40h, 5d or 2w, or a date and time with an offset or time zone."""

    allowed: str = (
        "a duration such as 40h, 5d or 2w, or a date and time with offset or time zone, "
        "such as 2026-12-01T18:00Z or 2026-12-01T18:00 Europe/Berlin"
    )
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> str:
        text = str(raw).strip()
        self.check(text)
        return text

    def check(self, value: Any) -> None:
        check_type(value, str)
        read_pilot_end(value)


def read_pilot_end(text: str) -> Deadline:
    """Parse an end.

    Raises:
        UnreadableError: The text is not a valid end, for example a local time that a clock change skips or repeats.
    """
    after = read_duration(text, _UNITS)
    if after is not None:
        if not timedelta() < after <= _LONGEST:
            raise UnreadableError(f"choose a duration of more than zero and at most {_LONGEST.days}d")
        return Deadline(after=after)
    stamp, _, zone_name = text.partition(" ") if "T" in text else (text, "", "")
    try:
        local = datetime.fromisoformat(stamp)
    except ValueError:
        raise UnreadableError(f"specify {EndForm.allowed}") from None
    if zone_name:
        if local.tzinfo is not None:
            raise UnreadableError("specify the offset or the time zone, not both")
        return Deadline(at=_in_zone(local, zone_name.strip()))
    if local.tzinfo is None:
        written = local.isoformat(timespec="seconds" if local.second else "minutes")
        raise UnreadableError(f"add the time zone: write {written}Z for UTC, or {written} Europe/Berlin")
    return Deadline(at=_in_utc(local))


def hours_to_end(ends: str | None, now: datetime) -> int | None:
    """The hours until the end of a pilot that is first deployed now, rounded up.

    Args:
        ends: The setting trn:ends.
        now: The current time.

    Returns:
        The hours; None without an end, or if the end has passed.
    """
    if ends is None:
        return None
    left = read_pilot_end(ends).instant(now) - now
    return math.ceil(left / timedelta(hours=1)) if left > timedelta() else None


def minute_text(instant: datetime) -> str:
    """An instant without seconds, such as `2026-12-01T17:00Z`."""
    return utc_text(instant.replace(second=0, microsecond=0))


def passed_end(text: str, *, now: datetime) -> Problem | None:
    """The problem of an end that has passed; otherwise None.

    A duration never has one, because it counts from the start of the pilot. This is not a rule of plans: a cluster can
    still be inspected, extended and destroyed after its end.
    """
    at = read_pilot_end(text).at
    if at is None or at > now:
        return None
    return Problem(key="ends", got=text, allowed=f"a time after {utc_text(now.replace(microsecond=0))}, now", fix=LATER)


def _in_zone(local: datetime, zone_name: str) -> datetime:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones  # late: few plans name a time zone

    try:
        zone = ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = nearest(zone_name, tuple(available_timezones()))
        raise UnreadableError(f"{zone_name!r} is not a time zone" + (f"; write {close}" if close else "")) from None
    earlier, later = (_in_utc(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    if earlier.astimezone(zone).replace(tzinfo=None) != local:
        raise UnreadableError(f"clocks in {zone_name} skip {local:%H:%M} that day; specify another time, or one in UTC")
    if earlier != later:
        raise UnreadableError(
            f"{local:%H:%M} occurs twice that day in {zone_name}; "
            f"write {utc_text(earlier)} for the first, {utc_text(later)} for the second"
        )
    return earlier


def _in_utc(local: datetime) -> datetime:
    try:
        return local.astimezone(UTC)
    except OverflowError:
        raise UnreadableError(f"specify {EndForm.allowed}") from None


def extended_end(
    ends: str, *, by: timedelta, deployed: datetime | None, now: datetime, block_begins: datetime | None = None
) -> datetime:
    """The new end, in UTC: `by` after the current end, or after `now` if the current end has passed.

    Args:
        ends: The current setting.
        by: The extension.
        deployed: Time of the first deployment; None if the cluster is not deployed. A duration then starts at `now`.
        now: The current time.
        block_begins: The start of the nodes' Capacity Block. Default: there is none.
    """
    current = read_pilot_end(ends).instant(deployed or now, block_begins)
    later = max(current, now) + by
    # Rounded up to whole minutes.
    return (later + timedelta(minutes=1) - timedelta(microseconds=1)).astimezone(UTC).replace(second=0, microsecond=0)
