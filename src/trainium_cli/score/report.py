"""A score as a table, as the list of what failed, and as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from trainium_cli.layout import Table
from trainium_cli.score.corpus import Corpus
from trainium_cli.score.measuring import Score
from trainium_cli.score.outcome import Outcome
from trainium_cli.terminal import table

RULES = """\
deployed: complete, and with every resource of the template that is under no condition. updated: by a tag of the
stack and another description. left behind: in the account's lists after the deletion and not before, but for what
the template keeps. refused: with the documented reason, and the valid twin, if there is one, deploys."""

Row = tuple[str, Callable[[Sequence[Outcome]], int]]

_THROUGH: tuple[Row, ...] = (
    ("tried", len),
    ("deployed", lambda all_: sum(one.deployed for one in all_)),
    ("updated", lambda all_: sum(one.updated for one in all_)),
    ("deleted", lambda all_: sum(one.deleted for one in all_)),
    ("all of it, nothing left", lambda all_: sum(one.clean for one in all_)),
    ("something left behind", lambda all_: sum(bool(one.left_behind) for one in all_)),
    ("answered with a 500", lambda all_: sum(bool(one.internal_errors) for one in all_)),
)
_WRONG: tuple[Row, ...] = (
    ("tried", len),
    ("refused", lambda all_: sum(one.refused for one in all_)),
    ("answered with a 500", lambda all_: sum(bool(one.internal_errors) for one in all_)),
)
_SECTIONS = (("templates", _THROUGH), ("apps", _THROUGH), ("wrong", _WRONG))
_TITLES = {"templates": "templates", "apps": "CDK apps", "wrong": "wrong deployments"}


def score_table(scores: Mapping[str, Score]) -> Table:
    """One column for each of `scores`, which are by the name of what was measured."""
    rows = [
        (f"{_TITLES[section]}: {name}", *(str(count(getattr(score, section))) for score in scores.values()))
        for section, counts in _SECTIONS
        if any(getattr(score, section) for score in scores.values())
        for name, count in counts
    ]
    stored = [_stored(score) for score in scores.values()]
    rows.append(("resources: stored only, no service behind them", *stored))
    rows.append(("seconds", *(f"{score.seconds:.0f}" for score in scores.values())))
    return table(["", *scores], rows, right=list(scores))


def failures(scores: Mapping[str, Score]) -> Iterator[str]:
    """What did not go as it should have, and why, one line each."""
    for name, score in scores.items():
        for section, _ in _SECTIONS:
            for one in getattr(score, section):
                if not one.clean:
                    yield f"{name}: {one.name}: {_why(one)}"


def score_as_json(corpus: Corpus, scores: Mapping[str, Score]) -> dict[str, Any]:
    """Counts and outcomes by what was measured."""
    return {
        "left_out": dict(corpus.left_out),
        "scores": {
            name: {
                "seconds": round(score.seconds, 1),
                **{
                    section: {
                        "counts": {what: count(getattr(score, section)) for what, count in counts},
                        "outcomes": [asdict(one) for one in getattr(score, section)],
                    }
                    for section, counts in _SECTIONS
                },
            }
            for name, score in scores.items()
        },
    }


def share_clean(score: Score) -> float:
    """The share, from 0 to 1, of all that was tried which went as it should have; 1 for nothing."""
    every = [*score.templates, *score.apps, *score.wrong]
    return sum(one.clean for one in every) / len(every) if every else 1


def _stored(score: Score) -> str:
    every = [*score.templates, *score.apps]
    if not any(one.resources for one in every):
        return "-"
    return f"{sum(one.stored for one in every)} of {sum(one.resources for one in every)}"


def _why(one: Outcome) -> str:
    parts = [one.reason] if one.reason else []
    if one.left_behind:
        parts.append(f"left behind: {', '.join(one.left_behind)}")
    if one.internal_errors:
        parts.append(f"{one.internal_errors} answers with a 500")
    return "; ".join(parts).replace("\n", " | ")
