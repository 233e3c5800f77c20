"""Charts of a report: any numbers can be drawn within the picture, with their data beside them."""

import re
from itertools import pairwise
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.evidence.charts import WIDTH, ChartLine, Range, curve, ranges
from trainium_core.evidence.numbers import number

ANY = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=60)


def assert_inside(svg: str) -> None:
    """Every coordinate is a number within the picture."""
    drawn = fromstring(svg)
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    for element in drawn.iter():
        for name, end in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
            assert -0.1 <= float(element.attrib.get(name, 0)) <= end + 0.1
        for pair in re.findall(r"(?<=[ML])(\S+) (\S+?)(?=L|$)", element.attrib.get("d", "")):
            assert 0 <= float(pair[0]) <= width
            assert 0 <= float(pair[1]) <= height


@given(rows=st.lists(st.tuples(NAMES, ANY, ANY, NAMES), min_size=1, max_size=5), base=ANY)
def test_any_ranges_can_be_drawn(rows: list[tuple[str, float, float, str]], base: float) -> None:
    given_rows = [Range(label=name, low=low, high=high, text=text) for name, low, high, text in rows]
    chart = ranges("t", "USD", given_rows, base)
    assert_inside(chart.svg)
    assert [row[0] for row in chart.rows] == [name for name, *_ in rows]


@given(points=st.lists(st.tuples(ANY, ANY), min_size=2, max_size=9))
def test_labels_of_ticks_do_not_overlap(points: list[tuple[float, float]]) -> None:
    drawn = fromstring(curve("t", "step", "loss", [ChartLine(label="l", points=points)]).svg)
    ticks = [element for element in drawn.iter() if element.attrib.get("class") == "tick"]
    ends = sorted(
        (float(tick.attrib["x"]) - 3.5 * len(tick.text or ""), float(tick.attrib["x"]) + 3.5 * len(tick.text or ""))
        for tick in ticks
        if tick.attrib["text-anchor"] == "middle"
    )
    assert all(right < left for (_, right), (left, _) in pairwise(ends))
    assert ends[0][0] >= 0
    assert ends[-1][1] <= WIDTH


@given(points=st.lists(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=9), min_size=1, max_size=3))
def test_any_points_can_be_drawn_as_lines(points: list[list[tuple[float, float]]]) -> None:
    chart = curve("t", "step", "loss", [ChartLine(label=f"l{at}", points=line) for at, line in enumerate(points)])
    assert_inside(chart.svg)
    assert len(chart.rows) == len(points)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.023456, "0.02346"),
        (12.5, "12.5"),
        (-3.0, "-3"),
        (999.96, "1,000"),
        (52000.4, "52,000"),
        (1.5e12, "1.5e12"),
        (1e-7, "1e-07"),
        (float("nan"), "not a number"),
    ],
)
def test_number_is_rounded_for_the_reader(value: float, text: str) -> None:
    assert number(value) == text


def test_legend_names_lines_with_one_label_once() -> None:
    lines = [ChartLine(label="GPU", detail=f"run {at}", points=[(0, 1), (1, at)]) for at in range(3)]
    chart = curve("loss", "step", "loss", lines)
    assert chart.svg.count(">GPU<") == 1
    assert [row[0] for row in chart.rows] == ["GPU run 0", "GPU run 1", "GPU run 2"]
