"""The formats of texts and times in records."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def time_text(at: datetime) -> str:
    """A time with a time zone, in the format of records: UTC and whole seconds. The texts sort by time."""
    return at.astimezone(timezone.utc).strftime(_TIME)


def now_text() -> str:
    """The current time as `time_text`."""
    return time_text(datetime.now(timezone.utc))


def moment(raw: object) -> datetime | None:
    """Parse the result of `time_text`; None for anything else."""
    try:
        return datetime.strptime(str(raw), _TIME).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def json_value(text: str | bytes) -> Any:
    """Parse JSON that another machine has written.

    Raises:
        ValueError: The text is not JSON, or its values are nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def empty() -> dict[str, Any]:
    """The default for mappings in records."""
    return {}


def one_line(text: str, limit: int) -> str:
    """A text as one line of printable characters, cut to `limit`."""
    printable = "".join(character if character.isprintable() else " " for character in text[: 4 * limit])
    line = " ".join(printable.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
