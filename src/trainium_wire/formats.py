"""How texts and times are written in every record."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def time_text(at: datetime) -> str:
    """A moment, with its zone, as records hold it: in UTC and whole seconds. Of two, the later is the greater text."""
    return at.astimezone(timezone.utc).strftime(_TIME)


def now_text() -> str:
    """This moment, as `time_text`."""
    return time_text(datetime.now(timezone.utc))


def moment(raw: object) -> datetime | None:
    """The moment that a text of `time_text` is; None for anything else."""
    try:
        return datetime.strptime(str(raw), _TIME).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def empty() -> dict[str, Any]:
    """The default of a mapping in a record."""
    return {}


def one_line(text: str, limit: int) -> str:
    """A text as one line of printable characters, cut to `limit`."""
    printable = "".join(character if character.isprintable() else " " for character in text[: 4 * limit])
    line = " ".join(printable.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
