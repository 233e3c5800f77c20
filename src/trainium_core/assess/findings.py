"""Findings in a code base, and parts that could not be read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainium_core.assess.rules import STACKS, CodeRule, Severity, rules

CANNOT_SEE = (
    "what only a compiler decides: graph size, device memory, operators inside installed libraries",
    "values that are not in the code: command lines, YAML and JSON files, shapes of data, which branch runs",
    "whether code is part of the training: preprocessing on the CPU has findings too",
    "results: whether the numbers stay the same",
)
"""What reading the code cannot determine; compiling it and running a few steps can."""

EFFORT = {"S": "up to an hour", "M": "up to a day", "L": "more than a day"}
"""The meaning of each effort: an estimate for one place, by the authors of the rules."""


@dataclass(frozen=True, kw_only=True, order=True)
class CodeFinding:
    """A place that a rule matches. Lines and columns count from 1, columns in characters; the end is after the match.

    Attributes:
        cell: The code cell of a notebook, from 1 (other cells are not counted); lines then count within the cell.
            0: not in a notebook.
        rule: ID of the rule.
        code: The start of the line, at most 200 characters.
        reason: The reason in the comment that ignores the finding; empty if no comment does.
    """

    path: str
    cell: int = 0
    line: int
    column: int
    end_line: int
    end_column: int
    rule: str
    code: str = ""
    reason: str = ""

    @property
    def place(self) -> str:
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.path}:{cell}{self.line}:{self.column}"


@dataclass(frozen=True, kw_only=True, order=True)
class ReadingProblem:
    """A file or notebook cell that could not be read, or a comment that ignores nothing.

    Attributes:
        line: The line in the file or notebook cell, from 1; 0 if unknown.
    """

    path: str
    line: int = 0
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(kw_only=True)
class FileFindings:
    """The findings in one file.

    Attributes:
        unreadable: The file, or its notebook cells, if they could not be read.
        comments: The comments that ignore findings, by line: the rules that they name, and the reason.
        unknown: The first place of each library that libraries.toml does not name, by the library's name.
        lines: The number of lines that were read.
        late: Findings in other files, in functions that this one calls.
    """

    path: str
    findings: list[CodeFinding] = field(default_factory=list[CodeFinding])
    unreadable: list[ReadingProblem] = field(default_factory=list[ReadingProblem])
    comments: Mapping[int, tuple[Sequence[str], str]] = field(default_factory=dict[int, tuple[Sequence[str], str]])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    lines: int = 0
    late: list[CodeFinding] = field(default_factory=list[CodeFinding])


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The findings in all files.

    Attributes:
        files: The number of files that were read, at least in part.
        lines: The number of lines that were read.
        unreadable: Files and notebook cells that could not be read.
        comments: Comments that ignore nothing.
        unknown: The first place of each library that libraries.toml does not name, by the library's name.
        known: The number of findings of the baseline, which `findings` does not contain.
        unselected: The number of findings of rules that are not selected, which `findings` does not contain.
    """

    files: int
    lines: int
    findings: Sequence[CodeFinding]
    unreadable: Sequence[ReadingProblem]
    comments: Sequence[ReadingProblem]
    unknown: Mapping[str, str]
    known: int = 0
    unselected: int = 0

    def counted(self, stacks: Sequence[str] = STACKS) -> Sequence[CodeFinding]:
        """Findings that matter for at least one of the stacks and that no comment ignores."""
        return [
            finding
            for finding in self.findings
            if not finding.reason and rules()[finding.rule].highest_severity(stacks) > Severity.none
        ]

    @property
    def ignored(self) -> Sequence[CodeFinding]:
        return [finding for finding in self.findings if finding.reason]

    def by_rule(self, stacks: Sequence[str] = STACKS) -> Mapping[CodeRule, Sequence[CodeFinding]]:
        """Counted findings by rule, the worst first; rules of equal severity by falling number of findings."""
        findings_of = dict[str, list[CodeFinding]]()
        for finding in self.counted(stacks):
            findings_of.setdefault(finding.rule, []).append(finding)
        ordered = sorted(
            findings_of, key=lambda name: (-rules()[name].highest_severity(stacks), -len(findings_of[name]), name)
        )
        return {rules()[name]: findings_of[name] for name in ordered}

    def kinds(self, stack: str) -> Mapping[Severity, int]:
        """The number of rules with findings by severity, the worst first."""
        severities = [rule.severity[stack] for rule in self.by_rule((stack,))]
        return {severity: severities.count(severity) for severity in sorted(set(severities), reverse=True)}

    def worst(self, stacks: Sequence[str] = STACKS) -> Severity:
        return max(
            (rules()[finding.rule].highest_severity(stacks) for finding in self.counted(stacks)), default=Severity.none
        )

    def verdict(self, stack: str) -> str:
        """The verdict on the code for a stack, in words."""
        counts = self.kinds(stack)
        words = ", ".join(_counted(count, *_COUNTED[severity]) for severity, count in counts.items())
        # Only the first number says what is counted.
        words = re.sub("kinds?", r"\g<0> of finding", words, count=1)
        worst = max(counts, default=Severity.none)
        gaps = self._gaps()
        if not counts:
            return f"nothing found{gaps}" if self.files else "unknown: nothing was read"
        return f"{_VERDICT[worst]}: {words}{gaps}"

    def _gaps(self) -> str:
        gaps = list[str]()
        if self.unreadable:
            files = {problem.path for problem in self.unreadable}
            gaps.append(_counted(len(files), "file not fully read", "files not fully read"))
        if self.unknown:
            gaps.append(_counted(len(self.unknown), "library unknown", "libraries unknown"))
        if left_out := self.known + self.unselected:
            gaps.append(_counted(left_out, "finding left out", "findings left out"))
        return f"; {', '.join(gaps)}" if gaps else ""


_VERDICT = {
    Severity.stops: "does not run unchanged",
    Severity.change: "needs edits",
    Severity.slow: "nothing found that stops it",
    Severity.review: "nothing found that stops it",
}

_COUNTED = {
    Severity.stops: ("kind stops it", "kinds stop it"),
    Severity.change: ("kind needs an edit", "kinds need an edit"),
    Severity.slow: ("kind costs time", "kinds cost time"),
    Severity.review: ("kind to review", "kinds to review"),
}


def _counted(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"
