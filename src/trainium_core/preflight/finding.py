"""Findings of checks, and the verdict of all of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainium_runtime.check_result import CheckResult, Outcome

Verdict = Literal["ready", "not ready", "unknown"]

_FROM_GOOD_TO_BAD: tuple[Outcome, ...] = ("pass", "warn", "unknown", "fail")


def worst_of(results: Iterable[CheckResult]) -> CheckResult:
    """Several results as one: the worst outcome there is, and everything about those that did not pass."""
    given = list(results)
    shown = [result for result in given if result.outcome != "pass"] or given
    return CheckResult(
        outcome=_FROM_GOOD_TO_BAD[max(_FROM_GOOD_TO_BAD.index(result.outcome) for result in shown)],
        found="; ".join(result.found for result in shown),
        needed="; ".join(dict.fromkeys(result.needed for result in shown if result.needed)),
        fix="; ".join(result.fix for result in shown if result.fix),
    )


@dataclass(frozen=True, kw_only=True)
class Finding(CheckResult):
    """The result of the check of that name. A suppressed one is shown, and does not count."""

    check: str
    suppressed: bool = False


def verdict(findings: Iterable[Finding]) -> Verdict:
    """A warning does not stand in the way; what is unknown is never ready."""
    outcomes = {finding.outcome for finding in findings if not finding.suppressed}
    if "fail" in outcomes:
        return "not ready"
    return "ready" if outcomes and outcomes <= {"pass", "warn"} else "unknown"
