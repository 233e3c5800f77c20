"""How results are shown: tables for people, JSON for programs, both on standard output."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """A console on standard output: colours only on a terminal and without NO_COLOR; 120 columns wide in a pipe."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    return Console(highlight=False, markup=False, emoji=False, width=width)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    wrapping: Sequence[str] = (),
) -> Table:
    """A plain table with a header. `right`: columns of numbers; `wrapping`: those that give way on a narrow screen."""
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        justify = "right" if column in right else "left"
        drawn.add_column(column, justify=justify, no_wrap=column not in wrapping, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
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
    click.echo(json.dumps(value, indent=2, default=str))
