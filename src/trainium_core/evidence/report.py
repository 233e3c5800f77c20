"""The report of a pilot, arranged from the contents of its records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from statistics import fmean

from trainium_core.assess.rules import stacks
from trainium_core.evidence.charts import Chart
from trainium_core.evidence.comparability import comparable, with_missing_ratios
from trainium_core.evidence.decision import Decision, DecisionStep, decide, steps
from trainium_core.evidence.figures import COST, PERFORMANCE, RECOVERY, SIDES, Figure, by_side, interval_text, side_name
from trainium_core.evidence.folder import Answer, Evidence, questions
from trainium_core.evidence.gates import NOT_MEASURED
from trainium_core.evidence.metric import DERIVED, Metric
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import BENCH, GPU, LAB, TCO, TRAINIUM, Comparability, Record
from trainium_core.evidence.report_charts import loss_charts, sensitivity_charts, step_charts
from trainium_core.evidence.summary import KeyResult, aws_claim, key_results
from trainium_core.evidence.tco import BREAK_EVEN, LINE, SAVING, TOTAL
from trainium_core.html_page import html_page

_MOST_COLUMNS = 4
_Column = tuple[Record, Mapping[str, Metric]]

NEVER_MEASURED = (
    "power and energy: this package measures neither",
    "what was not run: other models, longer runs, more nodes than the results files name",
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two records of the same workload, and whether they can be compared.

    Attributes:
        comparison: Their comparison, without the purchase option.
    """

    first: Record
    second: Record
    comparison: Comparability

    @property
    def price_basis(self) -> str:
        """Why paid costs cannot be compared, if everything else can; else empty."""
        return "" if self.comparison.different else comparable(self.first, self.second).verdict.partition(": ")[2]


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """A metric of several records.

    Attributes:
        cells: The figure of each record; None if the record does not have the metric. One of them has a value.
        ratios: The ratio of the first record to each of the others; None if the record states none.
    """

    title: str
    unit: str
    cells: tuple[Figure | None, ...]
    ratios: tuple[Figure | None, ...]


@dataclass(frozen=True, kw_only=True)
class MetricTable:
    """Metrics of records of one workload: a row for each metric, a column for each record.

    Attributes:
        against: The records that the ratios compare the first one with.
    """

    records: tuple[Record, ...]
    rows: tuple[MetricRow, ...]
    against: tuple[Record, ...]

    @property
    def bases(self) -> Sequence[str]:
        """How each number was obtained, or why it is unknown."""
        known = (cell for row in self.rows for cell in (*row.cells, *row.ratios) if cell and cell.basis)
        return list(dict.fromkeys(f"{cell.title}, {side_name(cell.record)}: {cell.basis}" for cell in known))


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
        key_results: The results of the first screen.
        tables: The metrics by section, of the newest record of each side and machine.
        older: The same for all other records.
        phases: The mean seconds of the phases of a run.
        year: The records of `trn tco`.
        not_measured: What is unknown or excluded, and the warnings of records.
        digests: The SHA-256 of each file, by path.
    """

    names: tuple[str, ...]
    decision: Decision
    steps: Sequence[DecisionStep]
    key_results: Sequence[KeyResult]
    tables: Mapping[str, Sequence[MetricTable]]
    older: Sequence[MetricTable]
    phases: Sequence[MetricTable]
    charts: Mapping[str, Sequence[Chart]]
    pairs: tuple[Pair, ...]
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
    records = with_missing_ratios(list(evidence.records.values()))
    evidence = replace(evidence, records=dict(zip(evidence.records, records, strict=True)))
    decision = decide(evidence)
    measured = [record for record in records if record.kind == BENCH]
    newest = list(_newest(measured))
    year = tuple(by_side(record for record in records if record.kind == TCO))
    arranged_steps = steps(evidence, decision)
    return PilotReport(
        names=tuple(dict.fromkeys(record.workload.name for record in records)),
        decision=decision,
        steps=arranged_steps,
        key_results=key_results(evidence),
        tables={
            section: tuple(_tables([(record, record.metrics) for record in newest], section))
            for section in (COST, PERFORMANCE, RECOVERY)
        },
        older=tuple(_tables((record, record.metrics) for record in measured if record not in newest)),
        phases=tuple(_tables((replace(record, comparable=()), _phases(record)) for record in newest)),
        charts={
            COST: tuple(sensitivity_charts(year)),
            PERFORMANCE: tuple(step_charts(measured)),
            "Results": tuple(loss_charts(measured)),
        },
        pairs=tuple(_pairs(measured)),
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
        side_name=side_name,
        version=version,
        made=made,
        number=number,
        interval=interval_text,
        year_rows=_year_rows(report.year),
        saving=SAVING,
        break_even=BREAK_EVEN,
        never_measured=NEVER_MEASURED,
        claim=aws_claim(report.key_results),
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
            yield Pair(first=first, second=record, comparison=comparable(first, record, of_cost=False))


def _newest(records: Sequence[Record]) -> Iterator[Record]:
    """The newest record of each workload, side and machine, Trainium first and the lab last."""
    newest = {(record.workload.name, record.side, record.hardware.type): record for record in by_side(records)}
    yield from newest.values()


def _tables(columns: Iterable[_Column], section: str | None = None) -> Iterator[MetricTable]:
    """A table for each workload with metrics of the section, or with any metrics; of many records, several."""
    by_workload = dict[str, list[_Column]]()
    for record, metrics in columns:
        by_workload.setdefault(record.workload.name, []).append((record, metrics))
    for same in by_workload.values():
        for at in range(0, len(same), _MOST_COLUMNS):
            table = _table(same[at : at + _MOST_COLUMNS], section)
            if table.rows:
                yield table


def _table(columns: Sequence[_Column], section: str | None) -> MetricTable:
    (first, _), *others = columns
    ratios = [
        (other, compared.ratios) for other, _ in others for compared in first.comparable if compared.against == other.id
    ]
    rows = list[MetricRow]()
    for name in sorted({name for _, metrics in columns for name in metrics}):
        cells = [_figure(name, record, metrics) for record, metrics in columns]
        known = [cell for cell in cells if cell and cell.metric.value is not None]
        if known and section in (None, known[0].section):
            row = tuple(_figure(name, first, of_other) for _, of_other in ratios)
            rows.append(MetricRow(title=words(name), unit=known[0].metric.unit, cells=tuple(cells), ratios=row))
    shown = [at for at in range(len(ratios)) if any(row.ratios[at] for row in rows)]
    return MetricTable(
        records=tuple(record for record, _ in columns),
        against=tuple(ratios[at][0] for at in shown),
        rows=tuple(replace(row, ratios=tuple(row.ratios[at] for at in shown)) for row in rows),
    )


def _figure(name: str, record: Record, metrics: Mapping[str, Metric]) -> Figure | None:
    return Figure(name=name, metric=metrics[name], record=record) if name in metrics else None


def _phases(record: Record) -> Mapping[str, Metric]:
    """The mean seconds of each phase, over the runs that are not excluded."""
    runs = [run for run in record.runs if run.excluded is None]
    known = {
        phase: [seconds for run in runs if (seconds := run.phases.get(phase)) is not None]
        for phase in dict.fromkeys(name for run in runs for name in run.phases)
    }
    return {
        phase: Metric(value=fmean(seconds), unit="s", n=len(seconds), origin=DERIVED, method="mean over runs")
        for phase, seconds in known.items()
        if seconds
    }


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
                f"{record.workload.name} has run on {record.hardware.machine} ({record.id})"
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
