"""Tables and texts for any width: nothing is wider than the screen, and nothing is cut off or lost."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from trainium_cli.layout import Column, Pairs, Table, wrapped
from trainium_cli.terminal import Screen, shell_lines

words = st.text(st.characters(exclude_categories=("C", "Z", "M")), max_size=40)
sentences = st.lists(words, max_size=12).map(" ".join)


def drawn(what: RenderableType, width: int) -> list[str]:
    return Screen(width=width, has_colours=False).rendered(what).split("\n")


def without_space(text: str) -> str:
    return "".join(text.split())


@given(sentences, st.integers(4, 130))
def test_text_is_wrapped_within_the_width_without_loss(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert without_space("".join(lines)) == without_space(text)


@given(st.lists(st.tuples(words, sentences, words), min_size=1, max_size=5), st.integers(20, 130))
def test_table_fits_into_the_width_without_loss(rows: list[tuple[str, str, str]], width: int) -> None:
    columns = [Column(title="Node"), Column(title="What is wrong", wraps=True), Column(title="In all", right=True)]
    lines = drawn(Table(columns=columns, rows=[[Text(cell) for cell in row] for row in rows]), width)
    assert all(cell_len(line) <= width for line in lines)
    cells = "".join(cell for row in rows for cell in row)
    assert Counter(without_space(cells)) <= Counter(without_space("".join(lines)))


@given(st.lists(st.tuples(words, sentences), min_size=1, max_size=5), st.integers(20, 130))
def test_pairs_fit_into_the_width(rows: list[tuple[str, str]], width: int) -> None:
    lines = drawn(Pairs(rows=[(Text(name), Text(value)) for name, value in rows]), width)
    assert all(cell_len(line) <= width for line in lines)


WIDE = Table(
    columns=[Column(title="Instance"), Column(title="Launched"), Column(title="What is wrong", wraps=True)],
    rows=[
        [Text("i-0123456789abcdef0"), Text("11-23 08:53:03Z"), Text("neuron-ls lists 15 of 16 devices")],
        [Text("i-1"), Text(""), Text("")],
    ],
)


def test_rows_wider_than_the_screen_become_records() -> None:
    assert drawn(WIDE, 50) == [
        "i-0123456789abcdef0",
        "  Launched       11-23 08:53:03Z",
        "  What is wrong  neuron-ls lists 15 of 16 devices",
        "",
        "i-1",
    ]


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_long_command_is_wrapped_with_backslashes(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    command = "trn preflight -c trn:capacity=on-demand -c 'trn:tags=a long word' -c trn:availability_zone_id=usw2-az1"
    lines = shell_lines(command).split("\n")
    assert max(map(len, lines)) <= int(columns)
    assert " ".join(line.removesuffix("\\").strip() for line in lines) == command
