"""Charts of a report as inline SVG: colours come from the page's style sheet, and each chart has a table of its data.

Every text becomes a text node of an XML tree, so a name in a record cannot become markup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isnan, log10
from xml.etree.ElementTree import Element, SubElement, tostring

from trainium_core.evidence.numbers import number

WIDTH = 400.0
_LEFT, _RIGHT = 40.0, 10.0
_ROW = 44.0
"""Height of a row."""
_LABEL = 21.0
"""Height of the label in a row."""
_PLOT_HEIGHT = 190.0
_CHARACTER = 6.7  # Estimated width of a character of a label.
_MAX_POINTS = 240
_LARGEST, _SMALLEST = 1e299, 1e-290
_LEAST_SPAN = 1e-9
_SERIES = 6  # The number of colours in the style sheet.


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing with its data. `svg` is markup; all other texts are plain."""

    title: str
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A value, with its interval if it is known.

    Attributes:
        text: The text at the end of the row. Default: the value with its unit.
        series: The number of the colour and shape.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    series: int = 0


@dataclass(frozen=True, kw_only=True)
class ChartLine:
    """A line of a chart.

    Attributes:
        label: The entry in the legend, which lines with the same label share.
        detail: A text that distinguishes lines with the same label.
        series: The number of the colour.
    """

    label: str
    detail: str = ""
    points: Sequence[tuple[float, float]]
    series: int = 0

    @property
    def name(self) -> str:
        return f"{self.label} {self.detail}".rstrip()


def dots(title: str, unit: str, rows: Sequence[Dot], *, limit: float | None = None, from_zero: bool = True) -> Chart:
    """Values on one axis, in one row each.

    Args:
        title: Title of the chart.
        unit: Unit of all values.
        rows: The values, from top to bottom.
        limit: The place of a dashed line, such as that of a gate.
        from_zero: Whether the axis includes 0.
    """
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    scale = _Scale.over([*ends, *([limit] if limit is not None else []), *([0.0] if from_zero else [])], 8, WIDTH - 8)
    height = len(rows) * _ROW + 30
    svg = _svg(title, "; ".join(f"{row.label}: {_with_interval(row)} {unit}" for row in rows), height)
    _ticks_below(svg, scale, height - 22, unit)
    if limit is not None:
        _upright(svg, scale.at(limit), height - 22, "limit")
    for at, row in enumerate(rows):
        top = at * _ROW
        _row_label(svg, top, row.label, row.text or f"{number(row.value)} {unit}")
        middle = top + 31
        if row.low is not None and row.high is not None:
            low, high = scale.at(row.low), scale.at(row.high)
            _line(svg, low, middle, high, middle, f"interval s{row.series % _SERIES}")
            for end in (low, high):
                _line(svg, end, middle - 5, end, middle + 5, f"interval s{row.series % _SERIES}")
        _marker(svg, scale.at(row.value), middle, row.series)
    return Chart(
        title=title,
        svg=_markup(svg),
        columns=("", unit, "low", "high"),
        rows=[(row.label, number(row.value), _or_dash(row.low), _or_dash(row.high)) for row in rows],
    )


def curve(title: str, across: str, unit: str, lines: Sequence[ChartLine]) -> Chart:
    """Lines over steps, such as the losses of runs."""
    series_of = {line.label: line.series for line in lines}
    legend = list(_legend_places(list(series_of)))
    top = legend[-1][2] + 26
    bottom = top + _PLOT_HEIGHT
    x_scale = _Scale.over([x for line in lines for x, _ in line.points], _LEFT, WIDTH - _RIGHT)
    y_scale = _Scale.over([y for line in lines for _, y in line.points], bottom, top)
    svg = _svg(title, "; ".join(line.name for line in lines), bottom + 24)
    for label, left, above in legend:
        _marker(svg, left + 5, above + 9, series_of[label])
        _text(svg, left + 15, above + 13, label, "tick")
    for tick in y_scale.ticks:
        _line(svg, _LEFT, y_scale.at(tick), WIDTH - _RIGHT, y_scale.at(tick), "grid")
        _text(svg, _LEFT - 6, y_scale.at(tick) + 4, number(tick), "tick", "end")
    _ticks_below(svg, x_scale, bottom, across, grid=False)
    for line in lines:
        places = [(x_scale.at(x), y_scale.at(y)) for x, y in _thinned(line.points)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        SubElement(svg, "path", {"d": f"M{path}", "class": f"line s{line.series % _SERIES}"})
        if len(places) == 1:
            _marker(svg, *places[0], line.series)
    return Chart(
        title=title,
        svg=_markup(svg),
        columns=("", f"first {unit}", f"last {unit}", f"last {across}"),
        rows=[
            (line.name, number(line.points[0][1]), number(line.points[-1][1]), number(line.points[-1][0]))
            for line in lines
        ],
    )


def stacked(title: str, unit: str, rows: Mapping[str, Mapping[str, float]]) -> Chart:
    """A bar per row with its parts, such as the phases of a run."""
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    totals = {label: sum(row.values()) for label, row in rows.items()}
    scale = _Scale.over([0.0, *totals.values()], 8, WIDTH - 8)
    height = len(rows) * _ROW + 24
    legend = list(_legend_places(parts))
    legend_height = (legend[-1][2] + 20) if legend else 0
    description = "; ".join(f"{label}: {number(total)} {unit}" for label, total in totals.items())
    svg = _svg(title, description, height + legend_height)
    _ticks_below(svg, scale, height - 16, unit)
    for at, (label, row) in enumerate(rows.items()):
        top, before = at * _ROW, 0.0
        _row_label(svg, top, label, f"{number(totals[label])} {unit}")
        for part, value in row.items():
            left, right = scale.at(before), scale.at(before + value)
            bar = _rect(svg, left, top + 22, max(right - left - 1, 0.5), 14, f"fill s{parts.index(part) % _SERIES}")
            SubElement(bar, "title").text = f"{label}, {part}: {number(value)} {unit}"
            before += value
    for part, left, top in legend:
        _rect(svg, left, height + top + 5, 10, 10, f"fill s{parts.index(part) % _SERIES}")
        _text(svg, left + 15, height + top + 14, part, "tick")
    return Chart(
        title=title,
        svg=_markup(svg),
        columns=("", *parts, f"sum, {unit}"),
        rows=[
            (label, *(_or_dash(row.get(part)) for part in parts), number(totals[label])) for label, row in rows.items()
        ],
    )


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """Maps values to coordinates, with round numbers as ticks."""

    ticks: Sequence[float]
    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> "_Scale":
        known = [_drawable(value) for value in values]
        low, high = min(known), max(known)
        if high - low <= max(abs(low), abs(high)) * _LEAST_SPAN:  # All values are equal: include 0.
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low < _SMALLEST:
            low, high = 0.0, 1.0
        step = _round_step((high - low) / 4)
        first, last = floor(low / step), -floor(-high / step)
        ticks = [at * step for at in range(int(first), int(last) + 1)]
        return cls(ticks=ticks, low=ticks[0], high=ticks[-1], start=start, end=end)

    def at(self, value: float) -> float:
        place = self.start + (_drawable(value) - self.low) / (self.high - self.low) * (self.end - self.start)
        return min(max(place, min(self.start, self.end)), max(self.start, self.end))


def _drawable(value: float) -> float:
    """The value, limited so that differences between values are finite; 0 for NaN."""
    return 0.0 if isnan(value) else min(max(value, -_LARGEST), _LARGEST)


def _round_step(rough: float) -> float:
    power = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if rough <= factor * power * 1.0001)


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """At most _MAX_POINTS of the points, including the first and the last."""
    if len(points) <= _MAX_POINTS:
        return points
    places = (round(at * (len(points) - 1) / (_MAX_POINTS - 1)) for at in range(_MAX_POINTS))
    return [points[place] for place in places]


def _legend_places(labels: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Each label with its coordinates, in as many lines as they need."""
    left, top = 8.0, 0.0
    for label in labels:
        width = 26 + min(len(label), 48) * _CHARACTER
        if left > 8 and left + width > WIDTH:
            left, top = 8.0, top + 18
        yield label, left, top
        left += width


def _ticks_below(svg: Element, scale: _Scale, y: float, unit: str, *, grid: bool = True) -> None:
    for tick in scale.ticks:
        x = scale.at(tick)
        if grid:
            _upright(svg, x, y, "grid")
    shown = [scale.ticks[0], *([0.0] if scale.low < 0 < scale.high else []), scale.ticks[-1]]
    if len(scale.ticks) > 2:
        shown.insert(1, scale.ticks[len(scale.ticks) // 2])
    for tick in dict.fromkeys(shown):
        anchor = "start" if tick == scale.ticks[0] else "end" if tick == scale.ticks[-1] else "middle"
        text = f"{number(tick)} {unit}" if tick == scale.ticks[-1] else number(tick)
        _text(svg, scale.at(tick), y + 15, text, "tick", anchor)


def _upright(svg: Element, x: float, bottom: float, kind: str) -> None:
    """A line over all rows down to the axis, with gaps for the labels."""
    rows = int(bottom // _ROW)
    for at in range(rows):
        _line(svg, x, at * _ROW + _LABEL, x, bottom if at == rows - 1 else (at + 1) * _ROW, kind)


def _svg(title: str, description: str, height: float) -> Element:
    svg = Element("svg", {"viewBox": f"0 0 {WIDTH:g} {height:g}", "role": "img"})
    SubElement(svg, "title").text = title
    SubElement(svg, "desc").text = description
    return svg


def _line(svg: Element, x1: float, y1: float, x2: float, y2: float, name: str) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(svg, "line", {**{key: f"{value:.1f}" for key, value in ends.items()}, "class": name})


def _rect(svg: Element, x: float, y: float, width: float, height: float, name: str) -> Element:
    sizes = {"x": x, "y": y, "width": width, "height": height}
    return SubElement(svg, "rect", {**{key: f"{value:.1f}" for key, value in sizes.items()}, "class": name})


def _text(svg: Element, x: float, y: float, text: str, name: str, anchor: str = "start") -> None:
    placed = {"x": f"{x:.1f}", "y": f"{y:.1f}", "class": name, "text-anchor": anchor}
    SubElement(svg, "text", placed).text = text


def _marker(svg: Element, x: float, y: float, series: int) -> None:
    """A circle, a square or a diamond: the shape of a series distinguishes it as well as its colour."""
    shapes = (
        f"M{x - 5:.1f} {y:.1f}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
        f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
        f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
    )
    SubElement(svg, "path", {"d": shapes[series % len(shapes)], "class": f"fill s{series % _SERIES}"})


def _markup(svg: Element) -> str:
    return tostring(svg, encoding="unicode")


def _with_interval(row: Dot) -> str:
    if row.low is None or row.high is None:
        return number(row.value)
    return f"{number(row.value)} ({number(row.low)} to {number(row.high)})"


def _or_dash(value: float | None) -> str:
    return "—" if value is None else number(value)


def _row_label(svg: Element, top: float, label: str, value: str) -> None:
    room = max(4, int((WIDTH - 24) / _CHARACTER) - len(value))
    _text(svg, 8, top + 16, label if len(label) <= room else f"{label[: room - 1]}…", "label")
    _text(svg, WIDTH - 8, top + 16, value, "value", "end")
