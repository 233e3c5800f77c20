"""What a check finds, and what all findings together come to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "warn", "fail", "unknown"]
Verdict = Literal["ready", "not ready", "could not tell"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one check answers: the number or state found, the one needed, and what to do if there is something to do."""

    outcome: Outcome
    found: str
    needed: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding(Answer):
    """The answer of the check of that name. A suppressed one is shown, and does not count."""

    check: str
    suppressed: bool = False


def verdict(findings: Iterable[Finding]) -> Verdict:
    """A warning does not stand in the way; what is unknown is never ready."""
    outcomes = {finding.outcome for finding in findings if not finding.suppressed}
    if "fail" in outcomes:
        return "not ready"
    return "ready" if outcomes and outcomes <= {"pass", "warn"} else "could not tell"
