"""Formats sizes, durations and other numbers."""

from collections.abc import Sequence

_KIB = 1024
_SHORT, _MINUTE, _HOUR = 10, 60, 3600


def size(count: float) -> str:
    """A number of bytes as text, such as 1.5 MiB."""
    if count == 1:
        return "1 byte"
    for unit in ("bytes", "KiB", "MiB"):
        if count < _KIB:
            return f"{count:.4g} {unit}"
        count /= _KIB
    return f"{count:.4g} GiB"


def duration(seconds: float) -> str:
    """A number of seconds as text, such as 90 min."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.1f} s" if seconds < _SHORT else f"{seconds:.0f} s"
    if seconds < 10 * _MINUTE:
        return duration_to_the_second(round(seconds))
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"


def duration_to_the_second(seconds: int) -> str:
    """A number of seconds as text, to the second, such as 3 min 20 s."""
    return f"{seconds} s" if seconds < 2 * _MINUTE else f"{seconds // _MINUTE} min {seconds % _MINUTE} s"


def percent(value: float | None) -> str:
    """A percentage as text; `unknown` for None."""
    return "unknown" if value is None else f"{value:.0f}%"


def number_text(value: float | None) -> str:
    """A number as text; `unknown` for None."""
    return "unknown" if value is None else f"{value:g}"


def sparkline(values: Sequence[float | None]) -> str:
    """Percentages as a line of bars; an unknown one is a space."""
    bars = "▁▂▃▄▅▆▇█"
    return "".join(" " if value is None else bars[min(int(value * len(bars) / 100), len(bars) - 1)] for value in values)
