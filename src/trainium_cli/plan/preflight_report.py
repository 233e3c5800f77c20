"""The findings of preflight as tables and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from trainium_cli.layout import Table
from trainium_cli.terminal import console, table
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Finding, verdict

_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "unknown": "magenta"}


def findings_as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    return {"verdict": verdict(findings), "findings": [asdict(finding) for finding in findings]}


def show_findings(plan: Plan, findings: Sequence[Finding], *, overridden: bool = False, briefly: bool = False) -> None:
    """Show the findings and the verdict.

    Args:
        plan: The plan that was checked.
        findings: All findings.
        overridden: Whether -c changed settings for this command only.
        briefly: Leave out passed checks.
    """
    shown = [finding for finding in findings if finding.outcome != "pass"] if briefly else findings
    if shown:
        console().print(findings_table(shown))
    if overridden and any(finding.fix for finding in findings if finding.outcome != "pass"):
        _remind("-c applies to one command: repeat it in the next command.")
    message = f"{verdict(findings)}: {plan.nodes} x {plan.instance_type} in {plan.region} ({_counts(findings)})"
    console().print(f"\n{message}", style="bold")


def findings_table(findings: Sequence[Finding]) -> Table:
    rows = [(finding.check, _outcome(finding), _words(finding)) for finding in findings]
    return table(["Check", "Outcome", "Found"], rows, wrapping=["Found"])


def _remind(sentence: str) -> None:
    console().print(f"\n{sentence}", style="dim")


def _outcome(finding: Finding) -> Text:
    if finding.suppressed:
        return Text("suppressed", "dim")
    return Text(finding.outcome, _STYLES[finding.outcome])


def _words(finding: Finding) -> str:
    """What was found, with need and fix if the finding has them."""
    lines = [finding.found]
    lines += [f"needed: {finding.needed}"] if finding.needed else []
    lines += [f"-> {finding.fix}"] if finding.fix else []
    return "\n".join(lines)


def _counts(findings: Sequence[Finding]) -> str:
    unsuppressed = [finding for finding in findings if not finding.suppressed]
    counts = [f"{n} {kind}" for kind in _STYLES if (n := sum(finding.outcome == kind for finding in unsuppressed))]
    ignored = len(findings) - len(unsuppressed)
    return ", ".join(counts + ([f"{ignored} suppressed"] if ignored else []))
