"""Measures how often `trn assess` is right: compares its findings with hand-made labels of code bases at fixed commits.

Labels are places and rules; they contain none of the code. The code is cloned from GitHub into a folder, which is kept:

    python -m tools.assess --checkouts build/assess --write
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trainium_core.assess.assessment import assess
from trainium_core.assess.rules import LIBRARY_PREFIX, rules

LABELS = Path(__file__).parent / "labels"
SETS = {
    "Code bases that no rule was written from": LABELS / "held-out",
    "Code bases that rules were written from": LABELS,
}
"""The folders of labels, by the titles of their tables."""

PAGE = Path(__file__).parents[2] / "docs" / "project" / "assess-accuracy.md"
_MEASURED = re.compile(r"<!-- measured -->\n.*?<!-- end of measured -->", re.DOTALL)

Place = tuple[str, int, str]
"""A file, a line and a rule."""


@dataclass(frozen=True, kw_only=True)
class CodeBase:
    """A labelled code base.

    Attributes:
        paths: The labelled files, and folders whose Python files are labelled.
        places: The expected findings.
    """

    name: str
    repository: str
    commit: str
    license: str
    paths: Sequence[str]
    places: frozenset[Place]


@dataclass
class Score:
    """The numbers of right, wrong and missing findings, by rule."""

    right: Counter[str] = field(default_factory=Counter[str])
    wrong: Counter[str] = field(default_factory=Counter[str])
    missed: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: "Score") -> None:
        self.right += other.right
        self.wrong += other.wrong
        self.missed += other.missed


def code_bases(folder: Path) -> Iterator[CodeBase]:
    for file in sorted(folder.glob("*.toml")):
        document = tomllib.loads(file.read_text())
        places = frozenset(
            (path, int(line), rule)
            for path, rows in document.pop("places").items()
            for line, _, rule in (row.partition(" ") for row in rows)
        )
        yield CodeBase(name=file.stem, places=places, **document)


def check_out(base: CodeBase, folder: Path) -> Path:
    """Check a code base out at its commit, cloned if necessary, and return its folder."""
    place = folder / base.name
    place.mkdir(parents=True, exist_ok=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=place, capture_output=True, text=True, check=False).stdout
    if head.strip() != base.commit:
        for command in (
            ("init", "--quiet"),
            ("fetch", "--quiet", "--depth", "1", base.repository, base.commit),
            ("checkout", "--quiet", "FETCH_HEAD"),
        ):
            subprocess.run(["git", *command], cwd=place, check=True)
    return place


def found_in(place: Path, paths: Sequence[str]) -> frozenset[Place]:
    """The findings in the Python files of these paths, without those in other files that they import."""
    labelled = [place / path for path in paths]
    return frozenset(
        (file.relative_to(place).as_posix(), row.line, row.rule)
        for row in assess(labelled).counted()
        for file in (Path(row.path),)
        if file.suffix == ".py" and any(file.is_relative_to(path) for path in labelled)
    )


def score(places: frozenset[Place], labelled: frozenset[Place]) -> Score:
    return Score(
        right=Counter(rule for *_, rule in places & labelled),
        wrong=Counter(rule for *_, rule in places - labelled),
        missed=Counter(rule for *_, rule in labelled - places),
    )


def report(title: str, scores: Sequence[tuple[CodeBase, Score]]) -> str:
    """The tables of a set for the page."""
    total = Score()
    for _, result in scores:
        total.add(result)
    by_base = [
        f"| [{base.name}]({base.repository}/tree/{base.commit}) | {base.license} | {_figures(result)} |"
        for base, result in scores
    ]
    names = sorted({*total.right, *total.wrong, *total.missed})
    by_rule = [f"| `{name}` | {rules()[name].title} | {_figures_of(total, (name,))} |" for name in names]
    code = [name for name in names if not name.startswith(LIBRARY_PREFIX)]
    header = "right | wrong | missed | precision | recall |"
    rule = "---|---|---|---|---|"
    return "\n".join(
        [
            f"## {title}",
            "",
            f"Measured on {datetime.now(UTC).date()}:",
            "",
            f"| code base | license | {header}",
            f"|---|---|{rule}",
            *by_base,
            f"| **all** | | {_figures(total)} |",
            f"| **all, without the rules of libraries** | | {_figures_of(total, code)} |",
            "",
            f"| rule | finds | {header}",
            f"|---|---|{rule}",
            *by_rule,
        ]
    )


def _figures(result: Score) -> str:
    return _figures_of(result, sorted({*result.right, *result.wrong, *result.missed}))


def _figures_of(result: Score, names: Sequence[str]) -> str:
    right, wrong, missed = (
        sum(counts[name] for name in names) for counts in (result.right, result.wrong, result.missed)
    )
    return f"{right} | {wrong} | {missed} | {_percent(right, wrong)} | {_percent(right, missed)}"


def _percent(right: int, other: int) -> str:
    return f"{100 * right / (right + other):.0f}%" if right + other else ""


def _scores(folder: Path, checkouts: Path, *, lists: bool) -> Sequence[tuple[CodeBase, Score]]:
    scores = list[tuple[CodeBase, Score]]()
    for base in code_bases(folder):
        findings = found_in(check_out(base, checkouts), base.paths)
        scores.append((base, score(findings, base.places)))
        if lists:
            for word, places in (("wrong", findings - base.places), ("missed", base.places - findings)):
                for path, line, rule in sorted(places):
                    print(f"{word} {base.name}/{path}:{line} {rule}")
    return scores


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.assess", description=__doc__)
    parser.add_argument("--checkouts", type=Path, default=Path("build/assess"), help="folder of the cloned code bases")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    parser.add_argument("--list", action="store_true", help="list the wrong and the missed findings")
    options = parser.parse_args()
    text = "\n\n".join(
        report(title, _scores(folder, options.checkouts, lists=options.list)) for title, folder in SETS.items()
    )
    print(text)
    if options.write:
        PAGE.write_text(
            _MEASURED.sub(lambda _: f"<!-- measured -->\n\n{text}\n\n<!-- end of measured -->", PAGE.read_text())
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
