"""Charts of a report: any numbers can be drawn, inside of the picture, with their data beside them."""

import re
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.evidence.charts import Dot, Series, Swing, curve, dots, stacked, tornado
from trainium_core.evidence.numbers import number

ANY = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(0, allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=60)


def assert_inside(svg: str) -> None:
    """Every coordinate is a number within the picture."""
    drawn = fromstring(svg)
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    for one in drawn.iter():
        for name, end in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
            assert -0.1 <= float(one.attrib.get(name, 0)) <= end + 0.1
        for pair in re.findall(r"(?<=[ML])(\S+) (\S+?)(?=L|$)", one.attrib.get("d", "")):
            assert 0 <= float(pair[0]) <= width
            assert 0 <= float(pair[1]) <= height


@given(rows=st.lists(st.tuples(NAMES, ANY, ANY, ANY), min_size=1, max_size=5), limit=st.none() | ANY)
def test_any_values_can_be_drawn_as_dots(rows: list[tuple[str, float, float, float]], limit: float | None) -> None:
    given_rows = [Dot(label=name, value=a, low=b, high=c) for name, a, b, c in rows]
    chart = dots("t", "s", given_rows, limit=limit)
    assert_inside(chart.svg)
    assert [row[0] for row in chart.rows] == [name for name, *_ in rows]


def test_vertical_lines_do_not_cross_the_labels() -> None:
    rows = [Dot(label="a side with a long name", value=2.0, low=1.0, high=3.0)] * 3
    drawn = fromstring(dots("t", "s", rows, limit=1.5).svg)
    labels = [float(one.attrib["y"]) for one in drawn.iter() if one.attrib.get("class") in ("label", "value")]
    lines = [one.attrib for one in drawn.iter() if one.attrib.get("class") in ("grid", "limit")]
    assert lines
    assert not [y for y in labels for one in lines if float(one["y1"]) < y < float(one["y2"])]


@given(points=st.lists(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=9), min_size=1, max_size=3))
def test_any_points_can_be_drawn_as_lines(points: list[list[tuple[float, float]]]) -> None:
    chart = curve("t", "step", "loss", [Series(label=f"l{at}", points=one) for at, one in enumerate(points)])
    assert_inside(chart.svg)
    assert len(chart.rows) == len(points)


@given(rows=st.dictionaries(NAMES, st.dictionaries(NAMES, POSITIVE, min_size=1, max_size=4), min_size=1, max_size=4))
def test_any_parts_can_be_stacked(rows: dict[str, dict[str, float]]) -> None:
    assert_inside(stacked("t", "s", rows).svg)


@given(base=ANY, ends=st.lists(st.tuples(ANY, ANY), min_size=1, max_size=12))
def test_any_swings_can_be_drawn_and_all_are_in_the_data(base: float, ends: list[tuple[float, float]]) -> None:
    swings = [Swing(label=f"d{at}", low=a, high=b, low_text="1", high_text="2") for at, (a, b) in enumerate(ends)]
    chart = tornado("t", "USD", base, swings)
    assert_inside(chart.svg)
    assert len(chart.rows) == len(ends)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.023456, "0.02346"),
        (12.5, "12.5"),
        (-3.0, "-3"),
        (999.96, "1000"),
        (52000.4, "52,000"),
        (1.5e12, "1.5e12"),
        (1e-7, "1e-07"),
        (float("nan"), "not a number"),
    ],
)
def test_number_has_four_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_legend_names_lines_with_one_label_once() -> None:
    lines = [Series(label="GPU", detail=f"run {at}", points=[(0, 1), (1, at)]) for at in range(3)]
    chart = curve("loss", "step", "loss", lines)
    assert chart.svg.count(">GPU<") == 1
    assert [row[0] for row in chart.rows] == ["GPU run 0", "GPU run 1", "GPU run 2"]
