"""Prints an assessment as text: verdicts, places, rules with findings, what was ignored or not read, and a summary."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from trainium_cli.layout import Pairs
from trainium_cli.terminal import console, echo, say
from trainium_core.assess.findings import CANNOT_SEE, EFFORT, Assessment
from trainium_core.assess.observed import Comparison
from trainium_core.assess.rules import CodeRule, Severity, rules, stacks
from trainium_core.evidence.record import LAB

_STYLES = {
    Severity.stops: "bold red",
    Severity.change: "yellow",
    Severity.slow: "magenta",
    Severity.review: "cyan",
    Severity.none: "green",
}


def show_assessment(assessment: Assessment, shown: Sequence[str]) -> None:
    """Print the assessment for the given frameworks."""
    out = console()
    for key in shown:
        stack = stacks()[key]
        worst = max(assessment.kinds(key), default=Severity.none)
        out.print(Text(f"{key}: {assessment.verdict(key)}", _STYLES[worst]))
        out.print(f"  {stack.title}: {stack.support} ({stack.source}, {stack.date})", style="dim")
    by_rule = assessment.by_rule(shown)
    findings = assessment.counted(shown)
    if findings:
        out.print()
    for finding in findings:
        echo(f"{finding.place}: {_severities(rules()[finding.rule], shown)}: {finding.rule} {finding.code}")
    shown_severity = None
    for rule, places in by_rule.items():
        severity = rule.highest_severity(shown)
        if severity != shown_severity:
            out.print()
            out.print(Text(f"{severity.name.upper()}: {severity.meaning}", _STYLES[severity]))
            shown_severity = severity
        out.print()
        out.print(Text(f"{rule.id}  {rule.title}, {_counted(len(places), 'place')}", "bold"))
        out.print(Pairs(rows=[(Text(label), Text(value)) for label, value in _details(rule, shown)]))
    _show_rest(assessment)
    out.print()
    effort = ", ".join(f"{letter} {meaning}" for letter, meaning in EFFORT.items())
    out.print(
        f"{_counted(len(findings), 'place')} of {_counted(len(by_rule), 'kind')} in "
        f"{_counted(assessment.files, 'file')}, {_counted(assessment.lines, 'line')}. "
        f"Estimated effort for one place: {effort}."
    )
    for count, what in ((assessment.known, "the baseline"), (assessment.unselected, "rules that are not selected")):
        if count:
            out.print(f"Left out: {_counted(count, 'finding')} of {what}.")


def _severities(rule: CodeRule, shown: Sequence[str]) -> str:
    """The severity, or that of each stack if they differ."""
    if len({rule.severity[stack] for stack in shown}) == 1:
        return rule.severity[shown[0]].name
    return ", ".join(f"{stack} {rule.severity[stack].name}" for stack in shown)


def show_comparison(comparison: Comparison, job: str, side: str) -> None:
    """Print the comparison of a job's counters with the predictions."""
    if side == LAB:
        say(f"\n{job} ran on a stand-in: its counters say nothing about Trainium.")
    seen = [f"{_titled(rule)}: {'; '.join(texts)}" for rule, texts in comparison.seen.items()]
    uncounted = f"Predicted, without a counter: {', '.join(comparison.uncounted)}"
    for title, rows in (
        ("Predicted and seen:", seen),
        ("Predicted and not seen:", [_titled(rule) for rule in comparison.not_seen]),
        ("Seen and not predicted:", [event.text for event in comparison.not_predicted]),
    ):
        say(f"\n{title}")
        for row in rows or ["nothing"]:
            say(f"  {row}")
    if comparison.uncounted:
        say(f"\n{uncounted}")


def _titled(rule: str) -> str:
    return f"{rule}  {rules()[rule].title}"


def _show_rest(assessment: Assessment) -> None:
    unknown = [f"{name} ({place})" for name, place in assessment.unknown.items()]
    ignored = [f"{finding.place}: {finding.rule} {finding.reason}" for finding in assessment.ignored]
    for title, rows in (
        ("Unknown libraries; check each:", unknown),
        ("Not read:", [str(problem) for problem in assessment.unreadable]),
        ("Ignored by comments:", ignored),
        ("Comments that ignore nothing:", [str(comment) for comment in assessment.comments]),
        ("Not detectable by reading; found by compiling and running a few steps:", CANNOT_SEE),
    ):
        if rows:
            say(f"\n{title}")
            for row in rows:
                say(f"  {row}")


def _details(rule: CodeRule, shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "severity", f"{_severities(rule, shown)}; effort {rule.effort}"
    yield "why", rule.why
    yield "fix", rule.fix
    if rule.doubt:
        yield "doubt", rule.doubt
    yield "source", f"{rule.source} ({rule.date})"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
