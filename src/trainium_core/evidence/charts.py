"""Charts of a report as inline SVG: colours come from the page's style sheet, and each chart has a table of its data.

Every text becomes a text node of an XML tree, so a name in a record cannot become markup. The style sheet never makes a
chart narrower than WIDTH on a screen of 390 pixels or in print, so texts have at least 12 pixels.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, isnan, log10
from xml.etree.ElementTree import Element, SubElement, tostring

from trainium_core.evidence.numbers import number

WIDTH = 320.0
_RIGHT = 12.0
_ROW = 58.0
"""Height of a row of ranges."""
_PLOT_HEIGHT = 170.0
_CHARACTER = 7.0  # Estimated width of a character.
_GAP = 10.0  # Smallest distance between the labels of two ticks.
_MAX_POINTS = 240
_LARGEST, _SMALLEST = 1e299, 1e-290
_LEAST_SPAN = 1e-9
_SERIES = 4  # The number of colours and dashes in the style sheet.


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing with its data. `svg` is markup; all other texts are plain."""

    title: str
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Range:
    """The range of a result, with the text below its label."""

    label: str
    low: float
    high: float
    text: str


@dataclass(frozen=True, kw_only=True)
class ChartLine:
    """A line of a chart.

    Attributes:
        label: The entry in the legend, which lines with the same label share.
        detail: A text that distinguishes lines with the same label.
        series: The number of the colour and dash.
    """

    label: str
    detail: str = ""
    points: Sequence[tuple[float, float]]
    series: int = 0

    @property
    def name(self) -> str:
        return f"{self.label} {self.detail}".rstrip()


def ranges(title: str, unit: str, rows: Sequence[Range], base: float) -> Chart:
    """Ranges around a value, in one row each, with a dashed line at the value."""
    scale = _Scale.over([base, *(end for row in rows for end in (row.low, row.high))], 8, WIDTH - 8)
    height = len(rows) * _ROW + 24
    svg = _svg(title, "; ".join(f"{row.label}: {number(row.low)} to {number(row.high)} {unit}" for row in rows), height)
    _ticks_below(svg, scale, height - 20)
    for at, row in enumerate(rows):
        top = at * _ROW
        _text(svg, 8, top + 14, _shortened(row.label, WIDTH - 16), "label")
        _text(svg, 8, top + 30, _shortened(row.text, WIDTH - 16), "tick")
        left, right = sorted((scale.at(row.low), scale.at(row.high)))
        bar = {"x": left, "y": top + 37, "width": max(right - left, 1.0), "height": 12}
        SubElement(svg, "rect", {**{key: f"{value:.1f}" for key, value in bar.items()}, "class": "bar"})
        _line(svg, scale.at(base), top + 34, scale.at(base), top + 52, "limit")
    return Chart(
        title=title,
        svg=tostring(svg, encoding="unicode"),
        columns=("", f"low, {unit}", f"high, {unit}"),
        rows=[(row.label, number(row.low), number(row.high)) for row in rows],
    )


def curve(title: str, across: str, unit: str, lines: Sequence[ChartLine]) -> Chart:
    """Lines over a quantity, such as the losses of runs over steps. Later lines are above earlier ones."""
    series = {line.label: line.series for line in lines}
    top = len(series) * 18 + 12
    bottom = top + _PLOT_HEIGHT
    y_scale = _Scale.over([y for line in lines for _, y in line.points], bottom, top)
    left = max(len(number(tick)) for tick in y_scale.ticks) * _CHARACTER + 10
    x_scale = _Scale.over([x for line in lines for x, _ in line.points], left, WIDTH - _RIGHT, tight=True)
    svg = _svg(title, "; ".join(line.name for line in lines), bottom + 38)
    for at, label in enumerate(series):
        _line(svg, 8, at * 18 + 9, 36, at * 18 + 9, f"line s{series[label] % _SERIES}")
        _text(svg, 44, at * 18 + 13, _shortened(label, WIDTH - 52), "label")
    for tick in y_scale.ticks:
        _line(svg, left, y_scale.at(tick), WIDTH - _RIGHT, y_scale.at(tick), "grid")
        _text(svg, left - 6, y_scale.at(tick) + 4, number(tick), "tick", "end")
    _ticks_below(svg, x_scale, bottom)
    _text(svg, WIDTH - _RIGHT, bottom + 33, across, "tick", "end")
    for line in lines:
        places = [(x_scale.at(x), y_scale.at(y)) for x, y in _thinned(line.points)]
        if len(places) == 1:  # A short line is visible, a point is not.
            places.append((min(places[0][0] + 4, WIDTH - _RIGHT), places[0][1]))
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        SubElement(svg, "path", {"d": f"M{path}", "class": f"line s{line.series % _SERIES}"})
    return Chart(
        title=title,
        svg=tostring(svg, encoding="unicode"),
        columns=("", f"first {unit}", f"last {unit}", f"last {across}"),
        rows=[
            (line.name, number(line.points[0][1]), number(line.points[-1][1]), number(line.points[-1][0]))
            for line in lines
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
    def over(cls, values: Iterable[float], start: float, end: float, *, tight: bool = False) -> "_Scale":
        """The scale of the values. It ends at them if it is tight, else at ticks."""
        known = [_drawable(value) for value in values]
        low, high = min(known), max(known)
        if high - low <= max(abs(low), abs(high)) * _LEAST_SPAN:  # All values are equal: include 0.
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low < _SMALLEST:
            low, high = 0.0, 1.0
        step = _round_step((high - low) / 4)
        first, last = floor(low / step), -floor(-high / step)
        ticks = [at * step for at in range(int(first), int(last) + 1)]
        if not tight:
            return cls(ticks=ticks, low=ticks[0], high=ticks[-1], start=start, end=end)
        inner = [tick for tick in ticks if low <= tick <= high]
        return cls(ticks=inner or ticks[:1], low=low, high=high, start=start, end=end)

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


def _ticks_below(svg: Element, scale: _Scale, y: float) -> None:
    """A grid line at each tick, and the labels that do not overlap: the last, and from the first on all that fit."""
    for tick in scale.ticks:
        _line(svg, scale.at(tick), y - 4, scale.at(tick), y, "grid")
    for tick, left, anchor in _fitting_labels(scale):
        _text(svg, left, y + 15, number(tick), "tick", anchor)


def _fitting_labels(scale: _Scale) -> Iterator[tuple[float, float, str]]:
    """Each tick whose label fits, with the coordinate and the anchor of the label."""
    taken, free = -_GAP, WIDTH + _GAP
    for tick in (scale.ticks[0], *scale.ticks[-1:0:-1]):
        half = len(number(tick)) * _CHARACTER / 2
        middle = min(max(scale.at(tick), half), WIDTH - half)
        if tick == scale.ticks[0]:
            taken = middle + half
        elif middle - half - taken < _GAP or free - middle - half < _GAP:
            continue
        else:
            free = middle - half
        yield tick, middle, "middle"


def _shortened(text: str, width: float) -> str:
    room = int(width / _CHARACTER)
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _svg(title: str, description: str, height: float) -> Element:
    svg = Element("svg", {"viewBox": f"0 0 {WIDTH:g} {height:g}", "role": "img"})
    SubElement(svg, "title").text = title
    SubElement(svg, "desc").text = description
    return svg


def _line(svg: Element, x1: float, y1: float, x2: float, y2: float, name: str) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(svg, "line", {**{key: f"{value:.1f}" for key, value in ends.items()}, "class": name})


def _text(svg: Element, x: float, y: float, text: str, name: str, anchor: str = "start") -> None:
    placed = {"x": f"{x:.1f}", "y": f"{y:.1f}", "class": name, "text-anchor": anchor}
    SubElement(svg, "text", placed).text = text
