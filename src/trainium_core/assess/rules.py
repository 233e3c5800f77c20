"""The rules and the table of libraries, from data/assess/: what they match, why it matters, and how to fix it."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import IntEnum
from functools import cache
from typing import Any

from trainium_core.facts import DATA

FOLDER = DATA / "assess"
STACKS = ("native", "xla")
"""PyTorch's software stacks on Trainium; see Stack."""

LIBRARY_PREFIX = "L-"
OPTIONAL_SUFFIX = "-optional"


class Severity(IntEnum):
    """How serious a finding is for one stack."""

    none = 0
    review = 1
    slow = 2
    change = 3
    stops = 4

    @property
    def meaning(self) -> str:
        return _MEANING[self]


_MEANING = {
    Severity.stops: "it does not run, and has no direct replacement",
    Severity.change: "it needs a known edit",
    Severity.slow: "it runs, and costs time in each step",
    Severity.review: "it depends on something that is not in the code",
    Severity.none: "nothing to do",
}

FAIL_ON = (*(severity.name for severity in sorted(Severity, reverse=True)[:-1]), "never")
"""The values of --fail-on: the lowest severity at which `trn assess` fails, or `never`."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """A condition on an argument of a call.

    Attributes:
        name: The argument's name.
        fits: A regular expression for its whole literal, or for the name that it resolves to.
        position: Its index among the positional arguments; None if it is matched only as a keyword.
    """

    name: str
    fits: str
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class Match:
    """What a rule matches. The items of a list are alternatives, except in `arguments` and `absent`.

    Attributes:
        names: Names that are used, whether called or not. A name that ends in `.*` includes all names below it.
        calls: Names that are called. `.*` has the same meaning.
        methods: Methods of a tensor, a module, or a value of unknown kind.
        imports: Modules or names that are imported; names below them are included.
        strings: A regular expression for a whole string.
        keywords: Alternative keyword arguments of any call, each with a regular expression for its whole value.
        environment: Environment variables that are read, set or removed; may contain wildcards.
        text: A regular expression for a part of a line.
        within: The kinds of files in whose lines `text` is searched.
        files: Names of files; may contain wildcards.
        check: The name of a function of `checks.py`, or `lfs_pointer`.
        arguments: Conditions on arguments of the call, all of which must hold.
        fewer_arguments: The call has fewer positional arguments than this number; 0: no condition.
        absent: Keyword arguments; the call has none of them.
        on_device: The first argument, if any, is not known to be on the host.
        place: Required place in the code: `loop`, `forward`, `comparison`, `value` (outside of a comparison),
            `device` (not a table that is computed on the CPU), `optional` (under a condition, or where a failed import
            is handled), or `required` (not `optional`).
        unguarded: Not inside an `if` statement whose condition is true on CUDA only, such as
            `torch.cuda.is_available()`.
        with_text: A regular expression for a text that the file must contain.
        unless_text: A regular expression for a text that the file must not contain.
    """

    names: Sequence[str] = ()
    calls: Sequence[str] = ()
    methods: Sequence[str] = ()
    imports: Sequence[str] = ()
    strings: str = ""
    keywords: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Sequence[str] = ()
    text: str = ""
    within: Sequence[str] = ()
    files: Sequence[str] = ()
    check: str = ""
    arguments: Sequence[Argument] = ()
    fewer_arguments: int = 0
    absent: Sequence[str] = ()
    on_device: bool = False
    place: str = ""
    unguarded: bool = False
    with_text: str = ""
    unless_text: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class CodeRule:
    """What a rule matches, and what a finding means.

    Attributes:
        kind: The subject of the rule, such as "CUDA" or "libraries".
        severity: The severity by stack.
        why: Why the code does not run on Trainium, or runs slowly.
        fix: How to change the code.
        effort: S, M or L; see `findings.EFFORT`.
        source: The evidence, as of `date`, at `url`.
        doubt: Why the severity may be wrong.
        covers: Rules whose findings on the same line are not reported.
        matches: Alternatives.
        bad: An example with a finding of this rule.
        good: An example without a finding of this rule.
        example_file: Name of the file with the example.
    """

    id: str
    title: str
    kind: str
    severity: Mapping[str, Severity]
    why: str
    fix: str
    effort: str
    source: str
    date: date
    url: str = ""
    doubt: str = ""
    covers: Sequence[str] = ()
    matches: Sequence[Match] = ()
    bad: str = ""
    good: str = ""
    example_file: str = "example.py"

    def highest_severity(self, stacks: Sequence[str]) -> Severity:
        return max(self.severity[stack] for stack in stacks)


@dataclass(frozen=True, kw_only=True)
class SoftwareStack:
    """One of PyTorch's software stacks on Trainium, and how long it is supported."""

    key: str
    title: str
    support: str
    source: str
    url: str
    date: date


@dataclass(frozen=True, kw_only=True)
class Libraries:
    """The rules of libraries.

    Attributes:
        by_module: The rule by the name of the imported module.
        by_distribution: The rule by the normalized name of the distribution.
        optional: The rule for optional imports of a library, by the rule of the library.
        neutral: Names of distributions without device code.
    """

    by_module: Mapping[str, CodeRule]
    by_distribution: Mapping[str, CodeRule]
    optional: Mapping[CodeRule, CodeRule]
    neutral: frozenset[str]


@cache
def stacks() -> Mapping[str, SoftwareStack]:
    document = tomllib.loads((FOLDER / "stacks.toml").read_text(encoding="utf-8"))
    return {key: SoftwareStack(key=key, **document[key]) for key in STACKS}


@cache
def rules() -> Mapping[str, CodeRule]:
    """Every rule by its ID, including the rules of libraries."""
    code_rules = list[CodeRule]()
    sources = tomllib.loads((FOLDER / "sources.toml").read_text(encoding="utf-8"))
    for file in sorted((FOLDER / "rules").glob("*.toml")):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        code_rules += [_rule(row, kind=document["kind"], sources=sources) for row in document["rule"]]
    return {rule.id: rule for rule in (*code_rules, *libraries().optional, *libraries().optional.values())}


def _rule(row: dict[str, Any], *, kind: str, sources: Mapping[str, Any]) -> CodeRule:
    fields = dict(row)
    severity = {stack: Severity[fields.pop(stack)] for stack in STACKS}
    matches = [_match(match) for match in fields.pop("match")]
    source = sources[fields.pop("source")]
    return CodeRule(**fields, **source, kind=kind, severity=severity, matches=matches)


def _match(row: dict[str, Any]) -> Match:
    fields = dict(row)
    arguments = [Argument(**argument) for argument in fields.pop("arguments", ())]
    return Match(**fields, arguments=arguments)


@cache
def libraries() -> Libraries:
    document = tomllib.loads((FOLDER / "libraries.toml").read_text(encoding="utf-8"))
    sources = document["sources"]
    by_module, by_distribution = dict[str, CodeRule](), dict[str, CodeRule]()
    for row in document["library"]:
        names = [row["name"], *row.get("distributions", [])]
        rule = CodeRule(
            id=LIBRARY_PREFIX + row["name"],
            title=f"Library {', '.join(names)}",
            kind="libraries",
            severity={stack: Severity[row[stack]] for stack in STACKS},
            why=row["why"],
            fix=row["fix"],
            effort=row["effort"],
            doubt=row.get("doubt", ""),
            **sources[row["source"]],
        )
        by_module |= dict.fromkeys(row.get("modules", [row["name"].replace("-", "_")]), rule)
        by_distribution |= dict.fromkeys(map(normalised, names), rule)
    neutral = frozenset(map(normalised, " ".join(document["neutral"]["names"]).split()))
    optional = {rule: _optional(rule) for rule in dict.fromkeys(by_distribution.values())}
    return Libraries(by_module=by_module, by_distribution=by_distribution, optional=optional, neutral=neutral)


def _optional(rule: CodeRule) -> CodeRule:
    return replace(
        rule,
        id=rule.id + OPTIONAL_SUFFIX,
        title=f"{rule.title}, imported under a condition or where a failed import is handled",
        severity={stack: min(severity, Severity.review) for stack, severity in rule.severity.items()},
        doubt="static analysis does not show whether the code works without the library",
    )


def normalised(distribution: str) -> str:
    """The name of a distribution, normalized as on PyPI."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
