"""The report of a pilot, arranged from the contents of its records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from trainium_core.assess.rules import stacks
from trainium_core.evidence.charts import Chart
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.decision import Decision, DecisionStep, decide, steps
from trainium_core.evidence.figures import COST, PERFORMANCE, RECOVERY, SIDES, Figure, by_side, interval_text, side_name
from trainium_core.evidence.folder import Answer, Evidence, questions
from trainium_core.evidence.gates import NOT_MEASURED
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import BENCH, GPU, LAB, TCO, TRAINIUM, Comparability, Record
from trainium_core.evidence.report_charts import dot_charts, loss_charts, phase_charts, year_charts
from trainium_core.evidence.tco import BREAK_EVEN, LINE, SAVING, TOTAL
from trainium_core.html_page import html_page

NEVER_MEASURED = (
    "power and energy: this package records neither",
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
    """A question about the contract.

    Attributes:
        known: Statements of the records and of this package about the question.
        answer: The answer in contract.toml, if any.
    """

    title: str
    question: str
    known: tuple[str, ...]
    answer: Answer | None


@dataclass(frozen=True, kw_only=True)
class PilotReport:
    """The contents of the page.

    Attributes:
        names: The workloads.
        sections: The metrics by section.
        ratios: The ratios of Trainium records, each with the ID of the other record.
        year: The records of `trn tco`.
        not_measured: What is unknown or excluded, and the warnings of records.
        digests: The SHA-256 of each file, by path.
    """

    names: tuple[str, ...]
    decision: Decision
    steps: Sequence[DecisionStep]
    sections: Mapping[str, Sequence[Figure]]
    charts: Mapping[str, Sequence[Chart]]
    pairs: tuple[Pair, ...]
    ratios: tuple[tuple[Figure, str], ...]
    year: tuple[Record, ...]
    contract: tuple[ContractRow, ...]
    not_measured: tuple[str, ...]
    evidence: Evidence
    digests: Mapping[str, str]

    @property
    def lab_record_count(self) -> int:
        return sum(record.side == LAB for record in self.evidence.records.values())


def arrange(evidence: Evidence) -> PilotReport:
    """The report on the evidence."""
    decision = decide(evidence)
    records = list(evidence.records.values())
    measured = [record for record in records if record.kind == BENCH]
    figures = sorted(
        (
            Figure(name=name, metric=metric, record=record)
            for record in by_side(measured)
            for name, metric in record.metrics.items()
        ),
        key=lambda figure: figure.name,
    )
    sections = {
        section: [figure for figure in figures if figure.section == section]
        for section in (PERFORMANCE, RECOVERY, COST)
    }
    year = tuple(by_side(record for record in records if record.kind == TCO))
    arranged_steps = steps(evidence, decision)
    return PilotReport(
        names=tuple(dict.fromkeys(record.workload.name for record in records)),
        decision=decision,
        steps=arranged_steps,
        sections=sections,
        charts={
            PERFORMANCE: (*dot_charts(sections[PERFORMANCE], decision), *phase_charts(measured)),
            "Results": tuple(loss_charts(measured)),
            RECOVERY: tuple(dot_charts(sections[RECOVERY], decision)),
            COST: (*dot_charts(sections[COST], decision), *year_charts(year)),
        },
        pairs=tuple(_pairs(measured)),
        ratios=tuple(_ratios(measured)),
        year=year,
        contract=tuple(_contract(evidence, measured)),
        not_measured=tuple(_not_measured(records, arranged_steps, evidence)),
        evidence=evidence,
        digests={path: sha256(content).hexdigest() for path, content in sorted(evidence.files.items())},
    )


def as_html(report: PilotReport, *, version: str, made: str) -> str:
    """The report as a page.

    Args:
        report: The report.
        version: The version of this package.
        made: The time of the report.
    """
    return html_page(
        "evidence/report.html.j2",
        report=report,
        evidence=report.evidence,
        sides=SIDES,
        version=version,
        made=made,
        number=number,
        interval=interval_text,
        year_rows=_year_rows(report.year),
        saving=SAVING,
        break_even=BREAK_EVEN,
        never_measured=NEVER_MEASURED,
    )


def _year_rows(year: Sequence[Record]) -> Mapping[str, Sequence[Figure | None]]:
    """Each line of twelve months, with the figure of each record; None if the record does not have the line."""
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
    """The ratios in the records of Trainium, each with the ID of the other record."""
    for record in (record for record in by_side(records) if record.side == TRAINIUM):
        for compared in record.comparable:
            for name, metric in compared.ratios.items():
                yield Figure(name=name, metric=metric, record=record), compared.against


def _contract(evidence: Evidence, measured: Sequence[Record]) -> Iterator[ContractRow]:
    for key, row in questions().items():
        known = [f"{row['known']} ({row['source']}, {row['date']})"] if "known" in row else []
        if key == "capacity":
            known += [
                f"{side_name(record)} was bought as {record.hardware.purchase}"
                for record in measured
                if record.side == TRAINIUM and record.hardware.purchase
            ]
        if key == "exit":
            known += [
                f"{record.workload.name} has run on {record.hardware.type} ({record.id})"
                for record in measured
                if record.side == GPU
            ]
        if key == "support":
            known += [f"{stack.title}: {stack.support} ({stack.source}, {stack.date})" for stack in stacks().values()]
        yield ContractRow(
            title=row["title"],
            question=row["question"],
            known=tuple(dict.fromkeys(known)),
            answer=evidence.answers.get(key),
        )


def _not_measured(records: Iterable[Record], arranged: Iterable[DecisionStep], evidence: Evidence) -> Iterator[str]:
    for step in arranged:
        if step.state == NOT_MEASURED:
            yield f"{step.title}: {step.text}"
    for record in records:
        for name, metric in record.metrics.items():
            if metric.value is None:
                yield f"{words(name)}, {side_name(record)}: {metric.why_null} ({record.id})"
        for run in record.runs:
            # `trn bench` also writes a warning about each excluded run.
            if run.excluded and not any(run.excluded in warning for warning in record.warnings):
                which = f"the run {run.job}" if run.job else "a run"
                yield f"{which} of {record.id} is excluded from all numbers: {run.excluded}"
        for warning in record.warnings:
            yield f"{record.id}: {warning}"
    if not evidence.assessed:
        yield "findings in the code: no assessment (trn assess --format json)"
    if not any(code.observed for code in evidence.assessed):
        yield "what the frameworks count: no job was observed (trn assess --observed JOB --format json)"
