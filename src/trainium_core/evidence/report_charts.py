"""The charts of a report. Only comparable records share a chart, so lab numbers never appear beside others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isfinite

from trainium_core.evidence.charts import Chart, Dot, Series, Swing, curve, dots, stacked, tornado
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.decision import Decision
from trainium_core.evidence.figures import COST, SERIES, SIDES, Figure, by_side, side_of
from trainium_core.evidence.numbers import words
from trainium_core.evidence.record import COMPARABLE, LAB, Metric, Record
from trainium_core.evidence.tco import LINE, SAVING, SWING, TOTAL


def _comparable_groups(figures: Iterable[Figure]) -> Sequence[Sequence[Figure]]:
    """Groups of figures whose records are all comparable: only these share an axis.

    Records that are comparable with a third one are comparable with each other: their conditions are equal.
    """
    groups = list[list[Figure]]()
    for figure in figures:
        for group in groups:
            if _can_share(figure, group[0]):
                group.append(figure)
                break
        else:
            groups.append([figure])
    return groups


def _can_share(a: Figure, b: Figure) -> bool:
    return a.metric.unit == b.metric.unit and comparable(a.record, b.record, of_cost=a.section == COST).verdict == (
        COMPARABLE
    )


def dot_charts(figures: Sequence[Figure], decision: Decision) -> Iterator[Chart]:
    known = sorted(
        (figure for figure in figures if figure.metric.value is not None),
        key=lambda one: (one.record.side == LAB, one.name),
    )
    for name, same in groupby(known, key=lambda figure: figure.name):
        for group in _comparable_groups(same):
            unit, limit = group[0].metric.unit, _limit(name, group, decision)
            title = _titled(words(name), [figure.record for figure in group])
            shown = title if limit is None else f"{title} (dashed: the gate)"
            yield dots(shown, unit, [_dot(figure) for figure in group], limit=limit)


def _titled(title: str, records: Iterable[Record]) -> str:
    """The title of a chart, which marks numbers of the lab."""
    return f"{title}, in the lab" if any(record.side == LAB for record in records) else title


def _dot(figure: Figure) -> Dot:
    metric = figure.metric
    return Dot(
        label=_label(figure.record),
        value=metric.value or 0.0,
        low=metric.low,
        high=metric.high,
        series=SERIES.index(figure.record.side),
    )


def _limit(name: str, group: Sequence[Figure], decision: Decision) -> float | None:
    """The limit of the gate of this name, from a record of the group."""
    ids = {figure.record.id for figure in group}
    for one in decision.judged:
        if one.name == name and one.record.id in ids:
            try:
                limit = float(one.limit.lstrip("<>= "))
            except ValueError:
                return None
            return limit if isfinite(limit) else None
    return None


def phase_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The seconds of each record's runs by phase: means over its runs."""
    for group in _record_groups(records):
        rows = {_label(record): means for record in group if (means := dict(_phase_means(record)))}
        if rows:
            yield stacked(_titled("phases of a run, mean", group), "s", rows)


def _record_groups(records: Iterable[Record]) -> Sequence[Sequence[Record]]:
    """Groups of comparable records, Trainium first and the lab last."""
    groups = list[list[Record]]()
    for record in by_side(records):
        for group in groups:
            if comparable(record, group[0], of_cost=False).verdict == COMPARABLE:
                group.append(record)
                break
        else:
            groups.append([record])
    return groups


def _label(record: Record) -> str:
    return f"{side_of(record)} ({record.id})"


def _phase_means(record: Record) -> Iterator[tuple[str, float]]:
    runs = [run for run in record.runs if run.excluded is None]
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        known = [seconds for run in runs if (seconds := run.phases.get(phase)) is not None]
        if known:
            yield words(phase), sum(known) / len(known)


def loss_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The losses of every run."""
    for group in _record_groups(records):
        lines = [line for record in group for line in _loss_lines(record)]
        if lines:
            yield curve(_titled("loss", group), "step", "loss", lines)


def _loss_lines(record: Record) -> Iterator[Series]:
    label = f"{SIDES[record.side]} ({record.id})"
    for at, run in enumerate(record.runs, start=1):
        points = [(point[0], point[1]) for point in run.loss if len(point) == 2]
        if points and run.excluded is None:
            yield Series(label=label, detail=f"run {at}", points=points, series=SERIES.index(record.side))


def year_charts(year: Sequence[Record]) -> Iterator[Chart]:
    """The known lines of twelve months, and what moves the result."""
    for group in _record_groups(year):
        rows = {_label(record): parts for record in group if (parts := dict(_known_lines(record)))}
        if rows:
            yield stacked(_titled("twelve months, known lines", group), "USD", rows)
    for record in year:
        yield from _sensitivity(record)


def _known_lines(record: Record) -> Iterator[tuple[str, float]]:
    for name, metric in record.metrics.items():
        if name.startswith(LINE) and metric.value:
            yield name.removeprefix(LINE), metric.value


def _sensitivity(record: Record) -> Iterator[Chart]:
    """Of the saving, or of the total if the saving is unknown."""
    known = [name for name in (SAVING, TOTAL) if name in record.metrics and record.metrics[name].value is not None]
    ends = {name.removeprefix(SWING): metric for name, metric in record.metrics.items() if name.startswith(SWING)}
    labels = dict.fromkeys(name.rpartition(": ")[0] for name in ends)
    swings = [swing for label in labels if (swing := _swing(label, ends)) is not None]
    if known and swings:
        base = record.metrics[known[0]].value or 0.0
        yield tornado(_titled(f"sensitivity of the {known[0]}", [record]), "USD", base, swings)


def _swing(label: str, ends: Mapping[str, Metric]) -> Swing | None:
    low, high = ends.get(f"{label}: low"), ends.get(f"{label}: high")
    if low is None or high is None or low.value is None or high.value is None:
        return None
    low_text, high_text = _end(low), _end(high)
    if low_text.partition(" ")[2] == high_text.partition(" ")[2]:  # Show the unit once.
        low_text = low_text.partition(" ")[0]
    return Swing(label=label, low=low.value, high=high.value, low_text=low_text, high_text=high_text)


def _end(metric: Metric) -> str:
    """The value of the driver: the method is "saving with 40 days"."""
    return (metric.method or "").partition(" with ")[2]
