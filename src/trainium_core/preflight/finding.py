"""Findings of checks, and their combined verdict."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult, Outcome

Check = Callable[[Plan, AwsAccount], CheckResult | None]
"""A preflight check: returns its result, or None if it does not apply to the plan.

A check may raise UnavailableError. The result is then `unknown`.
"""

Verdict = Literal["ready", "not ready", "unknown"]

_FROM_GOOD_TO_BAD: tuple[Outcome, ...] = ("pass", "warn", "unknown", "fail")


def worst_result(results: Iterable[CheckResult]) -> CheckResult:
    """Combine at least one result: the worst outcome, with the texts of those that did not pass, else of all."""
    combined = list(results)
    shown = [result for result in combined if result.outcome != "pass"] or combined
    return CheckResult(
        outcome=_FROM_GOOD_TO_BAD[max(_FROM_GOOD_TO_BAD.index(result.outcome) for result in shown)],
        found="; ".join(result.found for result in shown),
        needed="; ".join(dict.fromkeys(result.needed for result in shown if result.needed)),
        fix="; ".join(result.fix for result in shown if result.fix),
    )


@dataclass(frozen=True, kw_only=True)
class Finding(CheckResult):
    """The result of a check.

    Attributes:
        check: Name of the check.
        suppressed: Whether the finding is shown, but does not count.
    """

    check: str
    suppressed: bool = False


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The combined verdict. Warnings count as passed. Without findings, the verdict is unknown."""
    outcomes = {finding.outcome for finding in findings if not finding.suppressed}
    if "fail" in outcomes:
        return "not ready"
    return "ready" if outcomes and outcomes <= {"pass", "warn"} else "unknown"
