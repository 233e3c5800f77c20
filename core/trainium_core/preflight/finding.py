"""What a check finds, and what all findings together come to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainium_runtime.answer import Answer, Outcome

Verdict = Literal["ready", "not ready", "could not tell"]

_FROM_GOOD_TO_BAD: tuple[Outcome, ...] = ("pass", "warn", "unknown", "fail")


def worst_of(answers: Iterable[Answer]) -> Answer:
    """One answer for several: the worst outcome there is, and all that is to be said about what did not pass."""
    given = list(answers)
    shown = [answer for answer in given if answer.outcome != "pass"] or given
    return Answer(
        outcome=_FROM_GOOD_TO_BAD[max(_FROM_GOOD_TO_BAD.index(answer.outcome) for answer in shown)],
        found="; ".join(answer.found for answer in shown),
        needed="; ".join(dict.fromkeys(answer.needed for answer in shown if answer.needed)),
        fix="; ".join(answer.fix for answer in shown if answer.fix),
    )


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
