"""Which attempts are retried. Nodes and the command line apply the same rules, so their tests share these cases."""

from collections.abc import Mapping
from typing import Any

RETRY_SETTINGS: Mapping[str, Any] = {"retries": 1, "retry_on_exit_codes": [3], "retry_on_hang": True}

RETRY_CASES: tuple[tuple[str, int | None, Mapping[str, Any], bool], ...] = (
    ("node-lost", None, {}, True),
    ("node-lost", None, {"retries": 0}, False),
    ("failed", 3, {}, True),
    ("failed", 1, {}, False),
    ("failed", -9, {"retry_on_exit_codes": [137]}, True),
    ("hung", None, {}, True),
    ("hung", None, {"retry_on_hang": False}, False),
    ("stopped", None, {}, False),
    ("interrupted", None, {}, False),
    ("time-limit", None, {}, False),
    ("succeeded", 0, {}, False),
)
"""Result and exit code of the first attempt, changes to RETRY_SETTINGS, and whether a second attempt follows."""
