"""The charts of a report. Only comparable records share a chart, so lab numbers never appear beside others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from trainium_core.evidence.charts import Chart, ChartLine, Range, curve, ranges
from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.figures import SERIES, SIDES, by_side
from trainium_core.evidence.numbers import number
from trainium_core.evidence.record import LAB, Record
from trainium_core.evidence.tco import SAVING, SWING, TOTAL

_MAX_SWINGS = 8


def step_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The distribution of the seconds of a step, of the runs that are not excluded."""
    for chart in _side_charts("distribution of steps", "seconds", "share of steps", records, _distribution):
        yield replace(chart, title=f"{chart.title}: the share that takes at most so long")


def loss_charts(records: Iterable[Record]) -> Iterator[Chart]:
    """The losses of the runs that are not excluded."""
    yield from _side_charts("loss", "step", "loss", records, _losses)


def _side_charts(
    title: str, across: str, unit: str, records: Iterable[Record], lines: Callable[[Record], Iterator[ChartLine]]
) -> Iterator[Chart]:
    """A chart for each group of comparable records. The dashed lines of other sides are above that of Trainium."""
    for group in _record_groups(records):
        drawn = [line for record in group for line in lines(record)]
        if drawn:
            is_lab = any(record.side == LAB for record in group)
            yield curve(f"{title}, on stand-ins" if is_lab else title, across, unit, drawn)


def _record_groups(records: Iterable[Record]) -> Sequence[Sequence[Record]]:
    """Groups of records that can share a chart, Trainium first and the lab last.

    Records that are comparable with a third one are comparable with each other: their conditions are equal.
    """
    groups = list[list[Record]]()
    for record in by_side(records):
        shared = (group for group in groups if comparable(record, group[0], of_cost=False).comparable)
        group = next(shared, None)
        if group is None:
            groups.append([record])
        else:
            group.append(record)
    return groups


def _distribution(record: Record) -> Iterator[ChartLine]:
    seconds = sorted(value for run in record.runs if run.excluded is None for value in run.step_seconds)
    if len(seconds) > 1:
        points = [(value, (at + 1) / len(seconds)) for at, value in enumerate(seconds)]
        yield ChartLine(label=_label(record), points=[(seconds[0], 0.0), *points], series=SERIES.index(record.side))


def _losses(record: Record) -> Iterator[ChartLine]:
    for at, run in enumerate(record.runs, start=1):
        points = [(step, loss) for step, loss in map(tuple, run.loss) if step is not None and loss is not None]
        if points and run.excluded is None:
            series = SERIES.index(record.side)
            yield ChartLine(label=_label(record), detail=f"run {at}", points=points, series=series)


def _label(record: Record) -> str:
    return f"{SIDES[record.side]} ({record.id})"


def sensitivity_charts(year: Iterable[Record]) -> Iterator[Chart]:
    """The range of the saving by driver, the largest on top; of the total if the saving is unknown.

    The chart shows the first _MAX_SWINGS drivers, its table all of them.
    """
    for record in year:
        known = [name for name in (SAVING, TOTAL) if name in record.metrics and record.metrics[name].value is not None]
        names = dict.fromkeys(name.rpartition(": ")[0] for name in record.metrics if name.startswith(SWING))
        swings = sorted(
            (swing for name in names for swing in _swing(record, name)), key=lambda swing: swing[0].low - swing[0].high
        )
        if known and swings:
            title = f"sensitivity of the {known[0]}, USD{', on stand-ins' if record.side == LAB else ''}"
            base = record.metrics[known[0]].value or 0.0
            chart = ranges(title, "USD", [swing for swing, _ in swings[:_MAX_SWINGS]], base)
            columns = ("driver", "low", "high", "USD at low", "USD at high")
            yield replace(chart, columns=columns, rows=[row for _, row in swings])


def _swing(record: Record, name: str) -> Iterator[tuple[Range, Sequence[str]]]:
    """The range of the result for a driver, and the driver's row in the table."""
    low, high = (record.metrics.get(f"{name}: {end}") for end in ("low", "high"))
    if low is None or high is None or low.value is None or high.value is None:
        return
    label = name.removeprefix(SWING)
    # The method is such as "saving with 40 days".
    low_text, high_text = ((metric.method or "").partition(" with ")[2] for metric in (low, high))
    if low_text.partition(" ")[2] == high_text.partition(" ")[2]:  # Show the unit once.
        low_text = low_text.partition(" ")[0]
    ends = sorted((low.value, high.value))
    swing = Range(label=label, low=ends[0], high=ends[1], text=f"{low_text} to {high_text}")
    yield swing, (label, low_text, high_text, number(low.value), number(high.value))
