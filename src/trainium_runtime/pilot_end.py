"""The end of a pilot: hours after its start, or an instant."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Deadline:
    """The end of a pilot. Exactly one attribute is set.

    Attributes:
        after: Time from the start of the pilot, in whole hours.
        at: A time in UTC.
    """

    after: timedelta | None = None
    at: datetime | None = None

    def instant(self, deployed: datetime, block_begins: datetime | None = None) -> datetime:
        """The end in UTC of a pilot.

        Args:
            deployed: When it was first deployed.
            block_begins: The start of the Capacity Block of its nodes. Default: there is none.
        """
        return self.at or pilot_start(deployed, block_begins).astimezone(UTC) + (self.after or timedelta())

    @classmethod
    def from_text(cls, text: str) -> "Deadline":
        """Parse the result of `str`.

        Raises:
            ValueError: The text has another form.
        """
        if text.endswith("h"):
            return cls(after=int(text[:-1]) * _HOUR)
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError(f"an end without a UTC offset: {text!r}")
        return cls(at=at.astimezone(UTC))

    def __str__(self) -> str:
        """In one of the forms that `from_text` parses: `40h`, or an instant in UTC."""
        if self.at is not None:
            return utc_text(self.at)
        return f"{(self.after or timedelta()) // _HOUR}h"


def pilot_start(deployed: datetime, block_begins: datetime | None) -> datetime:
    """When a pilot starts: with its first deployment, or with the Capacity Block of its nodes if that begins later."""
    return max(deployed, block_begins or deployed)


def utc_text(instant: datetime) -> str:
    """An instant as `2026-12-01T17:00Z`, with seconds or microseconds if they are not 0."""
    in_utc = instant.astimezone(UTC).replace(tzinfo=None)
    precision = "microseconds" if in_utc.microsecond else "seconds" if in_utc.second else "minutes"
    return f"{in_utc.isoformat(timespec=precision)}Z"
