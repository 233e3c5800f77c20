"""The report of a pilot: arranges the contents of records. It computes no result that is not in a record."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from trainium_core.assess.rules import stacks
from trainium_core.evidence.charts import Chart
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.decision import MEASURING, Decision, Step, decide, steps
from trainium_core.evidence.figures import COST, PERFORMANCE, RECOVERY, SIDES, Figure, by_side, figures_of, side_of
from trainium_core.evidence.folder import Answer, AssessedCode, Evidence
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import COMPARABLE, GPU, LAB, TRAINIUM, Comparability, Record
from trainium_core.evidence.report_charts import dot_charts, loss_charts, phase_charts, year_charts
from trainium_core.evidence.tco import BREAK_EVEN, LINE, SAVING, TOTAL
from trainium_core.facts import DATA
from trainium_core.html_page import html_page

NEVER_MEASURED = (
    "power and energy: an instance cannot measure them",
    "what was not run: other models, longer runs, more nodes than the records name",
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two records of the same workload, and whether they can be compared."""

    first: Record
    second: Record
    comparison: Comparability


@dataclass(frozen=True, kw_only=True)
class ContractRow:
    """A question about the contract. known: the answer in the records and this package."""

    title: str
    question: str
    known: tuple[str, ...]
    answer: Answer | None


@dataclass(frozen=True, kw_only=True)
class ComparedFigure:
    """A metric of two pilots. ratio: of the first to the second; empty if they cannot be compared, with the reason."""

    title: str
    first: Figure
    second: Figure
    ratio: str
    why_none: str


@dataclass(frozen=True, kw_only=True)
class OtherPilot:
    """Another pilot to compare with this one."""

    decision: Decision
    figures: tuple[ComparedFigure, ...]


@dataclass(frozen=True, kw_only=True)
class PilotReport:
    """The contents of the page, in order."""

    names: tuple[str, ...]
    decision: Decision
    steps: Sequence[Step]
    assessed: tuple[AssessedCode, ...]
    sections: Mapping[str, Sequence[Figure]]
    charts: Mapping[str, Sequence[Chart]]
    pairs: tuple[Pair, ...]
    ratios: tuple[tuple[Figure, str], ...]
    year: tuple[Record, ...]
    contract: tuple[ContractRow, ...]
    not_measured: tuple[str, ...]
    records: Mapping[str, Record]
    digests: Mapping[str, str]
    not_read: Mapping[str, str]
    foreign: Mapping[str, str]
    contradictions: tuple[str, ...]
    other: OtherPilot | None

    @property
    def lab_records(self) -> int:
        return sum(record.side == LAB for record in self.records.values())


def arrange(evidence: Evidence, other: Evidence | None = None) -> PilotReport:
    """The report on the evidence, compared with another pilot if it is given."""
    decision = decide(evidence)
    records = list(evidence.records.values())
    measuring = [record for record in records if record.kind in MEASURING]
    figures = [
        Figure(name=name, metric=metric, record=record)
        for record in measuring
        for name, metric in sorted(record.metrics.items())
    ]
    year = tuple(by_side(record for record in records if record.kind == "tco"))
    arranged_steps = steps(evidence, decision)
    return PilotReport(
        names=tuple(dict.fromkeys(record.workload.name for record in records)),
        decision=decision,
        steps=arranged_steps,
        assessed=evidence.assessed,
        sections={section: figures_of(section, figures) for section in (PERFORMANCE, RECOVERY, COST)},
        charts={
            PERFORMANCE: (*dot_charts(figures_of(PERFORMANCE, figures), decision), *phase_charts(measuring)),
            "Results": tuple(loss_charts(measuring)),
            RECOVERY: tuple(dot_charts(figures_of(RECOVERY, figures), decision)),
            COST: (*dot_charts(figures_of(COST, figures), decision), *year_charts(year)),
        },
        pairs=tuple(_pairs(measuring)),
        ratios=tuple(_ratios(measuring)),
        year=year,
        contract=tuple(_contract(evidence, measuring)),
        not_measured=tuple(_not_measured(records, arranged_steps, evidence)),
        records=evidence.records,
        digests={path: sha256(content).hexdigest() for path, content in sorted(evidence.files.items())},
        not_read=evidence.not_read,
        foreign=evidence.foreign,
        contradictions=evidence.contradictions,
        other=None if other is None else OtherPilot(decision=decide(other), figures=tuple(_compared(evidence, other))),
    )


def as_html(report: PilotReport, *, version: str, made: str, digest: str | None) -> str:
    """The page. digest: of the manifest of its pack."""
    return html_page(
        "evidence/report.html.j2",
        report=report,
        sides=SIDES,
        version=version,
        made=made,
        digest=digest,
        number=number,
        year_rows=_year_rows(report.year),
        saving=SAVING,
        break_even=BREAK_EVEN,
        never_measured=NEVER_MEASURED,
    )


def _year_rows(year: Sequence[Record]) -> Mapping[str, Sequence[Figure | None]]:
    """Each line of twelve months, with the figure of each record that has it."""
    names = dict.fromkeys(name for record in year for name in record.metrics if name.startswith(LINE))
    return {
        name.removeprefix(LINE): [
            Figure(name=name, metric=record.metrics[name], record=record) if name in record.metrics else None
            for record in year
        ]
        for name in (*names, TOTAL)
    }


def _pairs(records: Sequence[Record]) -> Iterator[Pair]:
    """The newest Trainium record of each workload with the newest of every other side except the lab."""
    newest = {(record.workload.name, record.side): record for record in records if record.side != LAB}
    for (name, side), record in newest.items():
        if side != TRAINIUM and (name, TRAINIUM) in newest:
            first = newest[name, TRAINIUM]
            yield Pair(first=first, second=record, comparison=comparable(first, record))


def _ratios(records: Sequence[Record]) -> Iterator[tuple[Figure, str]]:
    """The ratios that records of Trainium have, each with the ID of the other record."""
    for record in (one for one in by_side(records) if one.side == TRAINIUM):
        for compared in record.comparable:
            for name, metric in compared.ratios.items():
                yield Figure(name=name, metric=metric, record=record), compared.against


@cache
def _questions() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((DATA / "evidence" / "contract.toml").read_text(encoding="utf-8"))


def _contract(evidence: Evidence, measuring: Sequence[Record]) -> Iterator[ContractRow]:
    for key, row in _questions().items():
        known = [f"{row['known']} ({row['source']}, {row['date']})"] if "known" in row else []
        if key == "capacity":
            known += _purchases(measuring)
        if key == "exit":
            known += _exits(measuring)
        yield ContractRow(
            title=row["title"], question=row["question"], known=tuple(known), answer=evidence.answers.get(key)
        )


def _purchases(measuring: Sequence[Record]) -> Sequence[str]:
    bought = [
        f"{side_of(record)} was bought as {record.hardware.purchase}"
        for record in measuring
        if record.side == TRAINIUM and record.hardware.purchase
    ]
    return list(dict.fromkeys(bought))


def _exits(measuring: Sequence[Record]) -> Sequence[str]:
    elsewhere = [
        f"{record.workload.name} has run on {record.hardware.type} ({record.id})"
        for record in measuring
        if record.side == GPU
    ]
    support = [f"{stack.title}: {stack.support} ({stack.source}, {stack.date})" for stack in stacks().values()]
    return list(dict.fromkeys((*elsewhere, *support)))


def _not_measured(records: Iterable[Record], done: Iterable[Step], evidence: Evidence) -> Iterator[str]:
    for step in done:
        if step.state == "not measured":
            yield f"{step.title}: {step.text}"
    for record in records:
        for name, metric in record.metrics.items():
            if metric.value is None:
                yield f"{words(name)}, {side_of(record)}: {metric.why_null} ({record.id})"
        for run in record.runs:
            if run.excluded:
                yield f"run {run.job or ''} of {record.id} is excluded from all numbers: {run.excluded}"
        for warning in record.warnings:
            yield f"{record.id}: {warning}"
    if not evidence.assessed:
        yield "findings in the code: no assessment (trn assess --format json)"
    if not any(code.observed for code in evidence.assessed):
        yield "what the frameworks count: no job was observed (trn assess --observed JOB --format json)"


def _compared(evidence: Evidence, other: Evidence) -> Iterator[ComparedFigure]:
    """The metrics of the newest records with the same side and workload in both pilots."""
    here, there = _newest(evidence), _newest(other)
    for record in by_side(here.values()):
        key = (record.workload.name, record.side)
        if key not in there:
            continue
        for name in sorted(record.metrics.keys() & there[key].metrics.keys()):
            first = Figure(name=name, metric=record.metrics[name], record=record)
            second = Figure(name=name, metric=there[key].metrics[name], record=there[key])
            yield _compared_figure(first, second)


def _newest(evidence: Evidence) -> Mapping[tuple[str, str], Record]:
    return {
        (record.workload.name, record.side): record for record in evidence.records.values() if record.kind in MEASURING
    }


def _compared_figure(first: Figure, second: Figure) -> ComparedFigure:
    verdict = comparable(first.record, second.record, of_cost=first.section == COST).verdict
    a, b = first.metric.value, second.metric.value
    why = "" if verdict == COMPARABLE else verdict
    if first.metric.unit != second.metric.unit:
        why = "not comparable: the units differ"
    elif not why and (a is None or not b):
        why = "a value is unknown or 0"
    ratio = "" if why or a is None or not b else number(a / b)
    return ComparedFigure(title=first.title, first=first, second=second, ratio=ratio, why_none=why)
