"""The charts of a report. Numbers of the lab never share one with others."""

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
        label=f"{side_of(figure.record)} ({figure.record.id})",
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
    by_lab = dict[bool, dict[str, Mapping[str, float]]]()
    for record in by_side(records):
        means = dict(_phase_means(record))
        if means:
            rows = by_lab.setdefault(record.side == LAB, {})
            rows[f"{side_of(record)} ({record.id})"] = means
    for is_lab, rows in by_lab.items():
        title = "phases of a run, mean"
        yield stacked(f"{title}, in the lab" if is_lab else title, "s", rows)


def _phase_means(record: Record) -> Iterator[tuple[str, float]]:
    runs = [run for run in record.runs if run.excluded is None]
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        known = [seconds for run in runs if (seconds := run.phases.get(phase)) is not None]
        if known:
            yield words(phase), sum(known) / len(known)


def loss_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The losses of every run, with those of the lab in a separate chart."""
    by_lab = dict[bool, list[Series]]()
    for record in by_side(records):
        for at, run in enumerate(record.runs):
            points = [(point[0], point[1]) for point in run.loss if len(point) == 2]
            if points and run.excluded is None:
                label = f"{SIDES[record.side]} ({record.id})"
                line = Series(label=label, detail=f"run {at + 1}", points=points, series=SERIES.index(record.side))
                by_lab.setdefault(record.side == LAB, []).append(line)
    for is_lab, lines in by_lab.items():
        yield curve("loss, in the lab" if is_lab else "loss", "step", "loss", lines)


def year_charts(year: Sequence[Record]) -> Iterator[Chart]:
    for is_lab, records in groupby(year, key=lambda one: one.side == LAB):
        rows = {
            f"{side_of(record)} ({record.id})": {
                name.removeprefix(LINE): metric.value
                for name, metric in record.metrics.items()
                if name.startswith(LINE) and metric.value
            }
            for record in records
        }
        known = {label: parts for label, parts in rows.items() if parts}
        if known:
            title = "twelve months, known lines"
            yield stacked(f"{title}, in the lab" if is_lab else title, "USD", known)
    for record in year:
        yield from _sensitivity(record)


def _sensitivity(record: Record) -> Iterator[Chart]:
    result = SAVING if record.metrics.get(SAVING, record.metrics[TOTAL]).value is not None else TOTAL
    base = record.metrics[TOTAL if SAVING not in record.metrics else result].value
    ends = {name.removeprefix(SWING): metric for name, metric in record.metrics.items() if name.startswith(SWING)}
    labels = dict.fromkeys(name.rpartition(": ")[0] for name in ends)
    swings = [swing for label in labels if (swing := _swing(label, ends)) is not None]
    if base is not None and swings:
        yield tornado(_titled(f"sensitivity of the {result}", [record]), "USD", base, swings)


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
