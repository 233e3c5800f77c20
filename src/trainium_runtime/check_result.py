"""The result of one check of an account."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "warn", "fail", "unknown"]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The number or state that a check found, the one needed, and what to do about it, if anything."""

    outcome: Outcome
    found: str
    needed: str = ""
    fix: str = ""
