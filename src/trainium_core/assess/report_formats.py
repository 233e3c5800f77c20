"""An assessment as JSON, as SARIF 2.1.0 for code scanning, and as a self-contained HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trainium_core.assess.findings import CANNOT_SEE, EFFORT, Assessment, CodeFinding, ReadingProblem
from trainium_core.assess.rules import CodeRule, Severity, rules, stacks
from trainium_core.html_page import html_page

JSON_SCHEMA = "trainium-assess/1"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {
    Severity.stops: "error",
    Severity.change: "warning",
    Severity.slow: "warning",
    Severity.review: "note",
    Severity.none: "none",
}
"""SARIF's level of each severity."""


def as_json(assessment: Assessment, shown: Sequence[str], version: str) -> Mapping[str, Any]:
    """The document of --format json, for the shown stacks."""
    used = {finding.rule for finding in (*assessment.counted(shown), *assessment.ignored)}
    return {
        "schema": JSON_SCHEMA,
        "version": version,
        "files": assessment.files,
        "lines": assessment.lines,
        "frameworks": {key: _stack(assessment, key) for key in shown},
        "rules": {name: _rule(rules()[name]) for name in sorted(used)},
        "findings": [_finding(finding) for finding in assessment.counted(shown)],
        "ignored": [{**_finding(finding), "reason": finding.reason} for finding in assessment.ignored],
        "left_out": {"baseline": assessment.known, "rules": assessment.unselected},
        "unknown_libraries": dict(assessment.unknown),
        "not_read": [_problem(problem) for problem in assessment.unreadable],
        "comments": [_problem(problem) for problem in assessment.comments],
        "cannot_see": CANNOT_SEE,
    }


def _stack(assessment: Assessment, key: str) -> Mapping[str, Any]:
    stack = asdict(stacks()[key])
    del stack["key"]
    kinds = {severity.name: count for severity, count in assessment.kinds(key).items()}
    return stack | {"date": str(stack["date"]), "verdict": assessment.verdict(key), "kinds": kinds}


def _rule(rule: CodeRule) -> Mapping[str, Any]:
    fields = ("title", "kind", "why", "fix", "effort", "doubt", "source", "url")
    severity = {stack: severity.name for stack, severity in rule.severity.items()}
    return {**{name: getattr(rule, name) for name in fields}, "severity": severity, "date": str(rule.date)}


def _finding(finding: CodeFinding) -> Mapping[str, Any]:
    return {name: value for name, value in asdict(finding).items() if name != "reason"} | {"cell": finding.cell or None}


def _problem(problem: ReadingProblem) -> Mapping[str, Any]:
    return asdict(problem) | {"line": problem.line or None}


def as_sarif(assessment: Assessment, shown: Sequence[str], version: str) -> Mapping[str, Any]:
    """The document of --format sarif: one run, with ignored findings as suppressed results."""
    ignored = [finding for finding in assessment.ignored if _worst(finding, shown) > Severity.none]
    results = sorted((*assessment.counted(shown), *ignored))
    used = list(dict.fromkeys(finding.rule for finding in results))
    driver = {
        "name": "trn assess",
        "version": version,
        "rules": [_sarif_rule(rules()[name], shown) for name in used],
    }
    invocation = {
        "executionSuccessful": not assessment.unreadable,
        "toolExecutionNotifications": [_notification(problem) for problem in assessment.unreadable],
    }
    verdicts = {key: assessment.verdict(key) for key in shown}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(finding, used.index(finding.rule), shown) for finding in results],
        "properties": {"verdict": verdicts, "unknownLibraries": list(assessment.unknown)},
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def as_html(assessment: Assessment, shown: Sequence[str], version: str, made: date) -> str:
    """The document of --format html, for the shown stacks."""
    groups = {
        severity: {
            rule: here for rule, here in assessment.by_rule(shown).items() if rule.highest_severity(shown) == severity
        }
        for severity in sorted(Severity, reverse=True)
    }
    return html_page(
        "assess/report.html.j2",
        assessment=assessment,
        shown=shown,
        stacks=stacks(),
        worst={stack: max(assessment.kinds(stack), default=Severity.none).name for stack in shown},
        groups={severity: rows for severity, rows in groups.items() if rows},
        rules=rules(),
        cannot_see=CANNOT_SEE,
        effort=EFFORT,
        version=version,
        made=made,
    )


def _worst(finding: CodeFinding, shown: Sequence[str]) -> Severity:
    return rules()[finding.rule].highest_severity(shown)


def _sarif_rule(rule: CodeRule, shown: Sequence[str]) -> Mapping[str, Any]:
    descriptor: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.why}."},
        "help": {"text": f"{rule.fix}. Source, {rule.date}: {rule.source}."},
        "defaultConfiguration": {"level": LEVELS[rule.highest_severity(shown)]},
        "properties": {stack: severity.name for stack, severity in rule.severity.items()} | {"effort": rule.effort},
    }
    return descriptor | ({"helpUri": rule.url} if rule.url else {})


def _result(finding: CodeFinding, rule_index: int, shown: Sequence[str]) -> Mapping[str, Any]:
    rule = rules()[finding.rule]
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path)}}}
    if finding.cell:
        location["logicalLocations"] = [{"name": f"cell {finding.cell}, line {finding.line}", "kind": "module"}]
    else:
        location["physicalLocation"]["region"] = {
            "startLine": finding.line,
            "startColumn": finding.column,
            "endLine": finding.end_line,
            "endColumn": finding.end_column,
        }
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": LEVELS[rule.highest_severity(shown)],
        "message": {"text": f"{rule.title}: {rule.why}. {rule.fix}."},
        "locations": [location],
    }
    if finding.reason:
        result["suppressions"] = [{"kind": "inSource", "justification": finding.reason}]
    return result


def _notification(problem: ReadingProblem) -> Mapping[str, Any]:
    location = {"physicalLocation": {"artifactLocation": {"uri": _uri(problem.path)}}}
    return {"level": "error", "message": {"text": problem.message}, "locations": [location]}


def _uri(path: str) -> str:
    file = Path(path)
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
