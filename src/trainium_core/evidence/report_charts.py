"""The charts of a report. Only comparable records share a chart, so lab numbers never appear beside others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import isfinite
from typing import TypeVar

from trainium_core.evidence.charts import Chart, ChartLine, Dot, curve, dots, stacked
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.decision import Decision
from trainium_core.evidence.figures import COST, SERIES, SIDES, Figure, by_side, side_name
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import LAB, Record
from trainium_core.evidence.tco import LINE, SAVING, SWING, TOTAL

Item = TypeVar("Item")
_MAX_SWINGS = 8


def _groups(items: Iterable[Item], can_share: Callable[[Item, Item], bool]) -> Sequence[Sequence[Item]]:
    """Groups of items that can share a chart.

    Records that are comparable with a third one are comparable with each other: their conditions are equal.
    """
    groups = list[list[Item]]()
    for item in items:
        group = next((group for group in groups if can_share(item, group[0])), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def _can_share_axis(a: Figure, b: Figure) -> bool:
    return a.metric.unit == b.metric.unit and comparable(a.record, b.record, of_cost=a.section == COST).comparable


def _record_groups(records: Iterable[Record]) -> Sequence[Sequence[Record]]:
    """Groups of comparable records, Trainium first and the lab last."""
    return _groups(by_side(records), lambda a, b: comparable(a, b, of_cost=False).comparable)


def dot_charts(figures: Sequence[Figure], decision: Decision) -> Iterator[Chart]:
    """Charts of the figures that have a value, by name."""
    known = sorted(
        (figure for figure in figures if figure.metric.value is not None),
        key=lambda figure: (figure.record.side == LAB, figure.name),
    )
    for name, same_name in groupby(known, key=lambda figure: figure.name):
        for group in _groups(same_name, _can_share_axis):
            limit = _limit(name, group, decision)
            title = _titled(words(name), [figure.record for figure in group])
            title += "" if limit is None else " (dashed: the gate)"
            yield dots(title, group[0].metric.unit, [_dot(figure) for figure in group], limit=limit)


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
    limits = [gate.limit for gate in decision.judgements if gate.name == name and gate.record.id in ids]
    try:
        limit = float(limits[0].lstrip("<>= "))
    except (ValueError, IndexError):
        return None
    return limit if isfinite(limit) else None


def phase_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The mean seconds of each phase, over the runs of a record that are not excluded."""
    for group in _record_groups(records):
        rows = {_label(record): means for record in group if (means := dict(_phase_means(record)))}
        if rows:
            yield stacked(_titled("phases of a run, mean", group), "s", rows)


def _label(record: Record) -> str:
    return f"{side_name(record)} ({record.id})"


def _phase_means(record: Record) -> Iterator[tuple[str, float]]:
    runs = [run for run in record.runs if run.excluded is None]
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        known = [seconds for run in runs if (seconds := run.phases.get(phase)) is not None]
        if known:
            yield words(phase), sum(known) / len(known)


def loss_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The losses of the runs that are not excluded."""
    for group in _record_groups(records):
        lines = [line for record in group for line in _loss_lines(record)]
        if lines:
            yield curve(_titled("loss", group), "step", "loss", lines)


def _loss_lines(record: Record) -> Iterator[ChartLine]:
    label = f"{SIDES[record.side]} ({record.id})"
    for at, run in enumerate(record.runs, start=1):
        points = [(step, loss) for step, loss in map(tuple, run.loss) if step is not None and loss is not None]
        if points and run.excluded is None:
            yield ChartLine(label=label, detail=f"run {at}", points=points, series=SERIES.index(record.side))


def year_charts(year: Sequence[Record]) -> Iterator[Chart]:
    """The known lines of twelve months, and the sensitivity of the result."""
    for group in _record_groups(year):
        rows = {_label(record): lines for record in group if (lines := dict(_known_lines(record)))}
        if rows:
            yield stacked(_titled("twelve months, known lines", group), "USD", rows)
    for record in year:
        yield from _sensitivity(record)


def _known_lines(record: Record) -> Iterator[tuple[str, float]]:
    for name, metric in record.metrics.items():
        if name.startswith(LINE) and metric.value:
            yield name.removeprefix(LINE), metric.value


def _sensitivity(record: Record) -> Iterator[Chart]:
    """The range of the saving by driver, the largest on top; of the total if the saving is unknown.

    The chart shows the first _MAX_SWINGS drivers, its table all of them.
    """
    known = [name for name in (SAVING, TOTAL) if name in record.metrics and record.metrics[name].value is not None]
    names = dict.fromkeys(name.rpartition(": ")[0] for name in record.metrics if name.startswith(SWING))
    swings = sorted((swing for name in names for swing in _swing(record, name)), key=lambda swing: -swing[1])
    if known and swings:
        base = record.metrics[known[0]].value or 0.0
        ranges = [replace(dot, value=base) for dot, _, _ in swings[:_MAX_SWINGS]]
        chart = dots(_titled(f"sensitivity of the {known[0]}", [record]), "USD", ranges, limit=base, from_zero=False)
        columns = ("driver", "low", "high", "USD at low", "USD at high")
        yield replace(chart, columns=columns, rows=[row for *_, row in swings])


def _swing(record: Record, name: str) -> Iterator[tuple[Dot, float, Sequence[str]]]:
    """The range of the result for a driver, the length of the range, and the driver's row in the table."""
    low, high = (record.metrics.get(f"{name}: {end}") for end in ("low", "high"))
    if low is None or high is None or low.value is None or high.value is None:
        return
    label = name.removeprefix(SWING)
    # The method is such as "saving with 40 days".
    low_text, high_text = ((metric.method or "").partition(" with ")[2] for metric in (low, high))
    if low_text.partition(" ")[2] == high_text.partition(" ")[2]:  # Show the unit once.
        low_text = low_text.partition(" ")[0]
    ends = sorted((low.value, high.value))
    dot = Dot(label=label, value=ends[0], low=ends[0], high=ends[1], text=f"{low_text} to {high_text}")
    yield dot, ends[1] - ends[0], (label, low_text, high_text, number(low.value), number(high.value))
