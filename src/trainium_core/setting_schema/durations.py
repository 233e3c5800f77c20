"""Durations as people write them: a whole number and its unit."""

import re
from collections.abc import Mapping
from datetime import timedelta


def read_duration(text: str, units: Mapping[str, timedelta]) -> timedelta | None:
    """None for a text that is none, such as one with another unit. units: what each letter stands for."""
    found = re.fullmatch(rf"([0-9]{{1,5}})\s*([{''.join(units)}])", text)
    return int(found[1]) * units[found[2]] if found else None
