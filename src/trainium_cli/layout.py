"""Tables and texts for a width in columns, drawn by rich: never wider than the screen, never cut."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

GAP = 2
_NARROWEST = 16
"""The minimum width of a column of sentences. Below it, rows are shown as records."""

_PLAIN = Console(color_system=None)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column, which may be right-aligned, and may become narrower on a narrow screen."""

    title: str
    right: bool = False
    wraps: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with a header. If its columns do not fit, each row is shown as titles and values."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        widths = self._widths(options.max_width)
        if widths is None:
            yield from self._records()
            return
        # The box adds a column between cells.
        padding = (0, GAP - 1, 0, 0)
        drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=padding, header_style="bold")
        for column, width in zip(self.columns, widths, strict=True):
            justify = "right" if column.right else "left"
            drawn.add_column(column.title, justify=justify, overflow="fold", width=width)
        for row in self.rows:
            drawn.add_row(*row)
        yield drawn

    def _widths(self, width: int) -> Sequence[int | None] | None:
        """The width of each column, None where rich chooses it. None if they do not fit."""
        room = width - GAP * (len(self.columns) - 1)
        cells = [max((_widest(row[at].plain) for row in self.rows), default=0) for at in range(len(self.columns))]
        titles = [_widest(column.title) for column in self.columns]
        if sum(map(max, cells, titles)) <= room:
            return [None] * len(self.columns)
        words = [max(map(cell_len, column.title.split()), default=0) for column in self.columns]
        least = [
            max(min(cell, _NARROWEST) if column.wraps else cell, word)
            for column, cell, word in zip(self.columns, cells, words, strict=True)
        ]
        if sum(least) > room:
            return None
        return [None if column.wraps else fixed for column, fixed in zip(self.columns, least, strict=True)]

    def _records(self) -> Iterator[RenderableType]:
        """Each row as a record: its first value, and the others as pairs of title and value."""
        titles = [" ".join(column.title.split()) for column in self.columns]
        label_width = max(map(cell_len, titles[1:]), default=0) + GAP
        for number, (first, *others) in enumerate(self.rows):
            if first.plain:
                if number:
                    yield ""
                yield Text(first.plain, first.style or "bold")
            pairs = [(Text(title), cell) for title, cell in zip(titles[1:], others, strict=True) if cell.plain]
            yield Pairs(rows=pairs, label_width=label_width)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Names and values, side by side, or below each other if there is no room for sentences.

    Attributes:
        rows: Names and values.
        label_width: Minimum width of the names, including the gap after them.
    """

    rows: Sequence[tuple[Text, Text]]
    label_width: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        label_width = max([self.label_width, *(cell_len(label.plain) + GAP for label, _ in self.rows)])
        widest = max((_widest(value.plain) for _, value in self.rows), default=0)
        if options.max_width - label_width - GAP < min(_NARROWEST, widest):
            for label, value in self.rows:
                yield Padding(label, (0, 0, 0, GAP))
                yield Padding(value, (0, 0, 0, 2 * GAP))
            return
        grid = RichTable.grid()
        grid.add_column(width=label_width)
        grid.add_column(overflow="fold")
        for row in self.rows:
            grid.add_row(*row)
        yield Padding(grid, (0, 0, 0, GAP))


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, wrapped between words, or within a word that is wider than a line.

    Wrapped lines keep the indentation, unless it is wider than half the width.
    """
    lines = list[str]()
    for line in text.expandtabs().split("\n"):
        words = line.strip()
        indentation = line[: len(line) - len(line.lstrip())] if words else ""
        if len(indentation) > width // 2:
            indentation = ""
        parts = Text(words).wrap(_PLAIN, width - len(indentation), overflow="fold")
        lines += [indentation + part.plain.rstrip() for part in parts]
    return lines


def _widest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))
