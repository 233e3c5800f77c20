"""How results are shown: tables for people, JSON for programs, both on standard output."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_NARROWEST_WRAPPED = 16
_GAP = 2


class _Console(Console):
    """Never cuts a line: what is wider than the screen runs on in its next line. No line ends in spaces."""

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        shown = (_WithoutPadding(one) if isinstance(one, str | Text | Table | Group) else one for one in objects)
        super().print(*shown, crop=crop, **options)


class _WithoutPadding:
    """Text or a table without the spaces that rich leaves at the ends of lines."""

    def __init__(self, padded: str | Text | Table | Group) -> None:
        self._padded = Text(padded) if isinstance(padded, str) else padded

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(console.render(self._padded, options)):
            while line and not line[-1].text.rstrip():
                line.pop()
            yield from line[:-1]
            for last in line[-1:]:
                yield Segment(last.text.rstrip(), last.style)
            yield Segment.line()


def console() -> Console:
    """A console on standard output: colours only on a terminal and without NO_COLOR; 120 columns wide in a pipe."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    return _Console(highlight=False, markup=False, emoji=False, width=width)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    wrapping: Sequence[str] = (),
) -> Table:
    """A plain table with a header. `right`: columns of numbers; `wrapping`: those that give way on a narrow screen.

    No cell is ever cut: a table that cannot be made narrow enough is wider than the screen.
    """
    rows = list(rows)
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    least = 0
    for at, column in enumerate(columns):
        widest = max((cell_len(str(row[at])) for row in rows), default=0)
        longest_word = max((cell_len(word) for word in column.split()), default=0)
        if column in wrapping:
            drawn.add_column(column, overflow="fold")
            least += min(widest, _NARROWEST_WRAPPED) + _GAP
        else:
            justify = "right" if column in right else "left"
            drawn.add_column(column, justify=justify, no_wrap=True, min_width=max(widest, longest_word))
            least += max(widest, longest_word) + _GAP
    for row in rows:
        drawn.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    if least > console().width:
        drawn.width = least
    return drawn


def pairs(rows: Iterable[tuple[str, str]], *, label_width: int) -> Table:
    """Names and what they stand for, in two columns; `label_width` lines several such tables up."""
    drawn = Table.grid(padding=(0, 2), pad_edge=True)
    drawn.add_column(min_width=label_width, no_wrap=True)
    drawn.add_column(overflow="fold")
    for label, value in rows:
        drawn.add_row(Text(label), Text(value))
    return drawn


def print_json(value: Any) -> None:
    # JSON knows no NaN and no Infinity, which a user's own file may hold.
    finite = json.loads(json.dumps(value, default=str), parse_constant=str)
    click.echo(json.dumps(finite, indent=2))
