"""What one check of an account answers."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "warn", "fail", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one check answers: the number or state found, the one needed, and what to do if there is something to do."""

    outcome: Outcome
    found: str
    needed: str = ""
    fix: str = ""
