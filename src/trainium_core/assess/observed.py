"""Compares the predictions for a code base with the counters of one of its jobs."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from trainium_core.assess.findings import Assessment
from trainium_core.explanations.known_errors import known_error, known_errors
from trainium_core.facts import DATA
from trainium_core.plurals import count
from trainium_wire.job_progress import Observed

RECOMPILED_AFTER = 2
"""This many graphs do not count as recompilation: one before the first step and one for it."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event that a job counted.

    Attributes:
        text: The event in words.
        rules: The rules that predict the event, if any.
    """

    text: str
    rules: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The findings in a code base, compared with the events that a job counted.

    Attributes:
        seen: Rules with findings whose effect was counted, each with its events.
        not_seen: Rules with findings whose effect was not counted in this job.
        not_predicted: Events without a finding.
        uncounted: Rules with findings whose effect has no counter, such as the name of a device in the code.
    """

    seen: Mapping[str, Sequence[str]]
    not_seen: Sequence[str]
    not_predicted: Sequence[Event]
    uncounted: Sequence[str]


def compared(assessment: Assessment, observed: Sequence[Observed], stacks: Sequence[str]) -> Comparison:
    """Compare the findings for the stacks with the counters of all nodes of a job."""
    predicted = [rule.id for rule in assessment.by_rule(stacks)]
    events = list(dict.fromkeys(event for counters in observed for event in _events(counters)))
    seen = {rule: texts for rule in predicted if (texts := [event.text for event in events if rule in event.rules])}
    countable = countable_rules()
    return Comparison(
        seen=seen,
        not_seen=[rule for rule in predicted if rule in countable and rule not in seen],
        not_predicted=[event for event in events if not set(event.rules) & {*predicted}],
        uncounted=[rule for rule in predicted if rule not in countable],
    )


def _events(observed: Observed) -> Iterator[Event]:
    for name in observed.fallbacks:
        yield Event(text=f"{name} on the CPU", rules=_operator_rules(name))
    for code in observed.errors:
        known = known_error(code)
        yield Event(text=f"{code}: {known.name if known else 'unknown'}", rules=known.rules if known else ())
    if observed.compiled > RECOMPILED_AFTER or observed.reasons:
        reason = next(iter(observed.reasons), "")
        text = f"{count(observed.compiled, 'graph')} compiled" + (f", for example because: {reason}" if reason else "")
        yield Event(text=text, rules=tuple(_table()["recompilations"]))


def _operator_rules(name: str) -> tuple[str, ...]:
    bare = name.removeprefix("aten::").partition(".")[0]
    operators: Mapping[str, list[str]] = _table()["operators"]
    return next((tuple(names) for pattern, names in operators.items() if fnmatchcase(bare, pattern)), ())


def countable_rules() -> frozenset[str]:
    """Rules whose effect a job counts."""
    table = _table()
    of_errors = (rule for error in known_errors() for rule in error.rules if "NCC_" in error.pattern)
    of_operators = (rule for names in table["operators"].values() for rule in names)
    return frozenset((*table["recompilations"], *of_operators, *of_errors))


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "assess" / "observed.toml").read_text(encoding="utf-8"))


def as_json(comparison: Comparison, job: str, side: str) -> Mapping[str, Any]:
    """The member `observed` of --format json.

    Args:
        comparison: The comparison.
        job: ID of the job.
        side: TRAINIUM or LAB.
    """
    return {
        "job": job,
        "side": side,
        "predicted_and_seen": {rule: list(texts) for rule, texts in comparison.seen.items()},
        "predicted_not_seen": list(comparison.not_seen),
        "seen_not_predicted": [event.text for event in comparison.not_predicted],
        "not_counted": list(comparison.uncounted),
    }
