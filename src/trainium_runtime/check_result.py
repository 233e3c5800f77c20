"""The result of one check of an account."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "warn", "fail", "unknown"]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What a check found, what is needed, and how to fix a problem."""

    outcome: Outcome
    found: str
    needed: str = ""
    fix: str = ""
