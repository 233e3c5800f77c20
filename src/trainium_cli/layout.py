"""Lays out text and tables for a width in columns: never wider than the screen, never cut."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

Segment = tuple[str, str]
"""A text and its style, such as `bold red`, or an empty string."""

Line = Sequence[Segment]

GAP = 2
_NARROWEST = 16
"""The minimum width of a column of sentences. Below it, rows are shown as records."""


class Renderable(Protocol):
    """Something with lines."""

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, none wider than `width` columns."""
        ...


@dataclass(frozen=True)
class Text:
    """A text in one style, of one or more lines."""

    text: str
    style: str = ""

    def __str__(self) -> str:
        return self.text

    def lines(self, width: int) -> Iterator[Line]:
        for line in wrapped(self.text, width):
            yield [(line, self.style)]


@dataclass(frozen=True)
class Group:
    """Items shown one below the other."""

    parts: Sequence[Renderable]

    def lines(self, width: int) -> Iterator[Line]:
        for part in self.parts:
            yield from part.lines(width)


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
    rule: str = "─"

    def lines(self, width: int) -> Iterator[Line]:
        widths = self._widths(width)
        if widths is None:
            yield from self._records(width)
            return
        titles = [Text(column.title, "bold") for column in self.columns]
        yield from self._row(titles, widths, bottom_aligned=True)
        yield [(self.rule * (sum(widths) + GAP * (len(widths) - 1)), "")]
        for row in self.rows:
            yield from self._row(row, widths)

    def _widths(self, width: int) -> list[int] | None:
        """The width of each column; None if they do not fit."""
        cells = [[str(row[at]) for row in self.rows] for at in range(len(self.columns))]
        widths, least = list[int](), list[int]()
        for column, texts in zip(self.columns, cells, strict=True):
            word = max((columns_of(word) for word in column.title.split()), default=0)
            widest = max((columns_of(line) for text in texts for line in text.split("\n")), default=0)
            title = max(columns_of(line) for line in column.title.split("\n"))
            widths.append(max(widest, title if column.wraps else word))
            least.append(max(min(widest, _NARROWEST), word) if column.wraps else widths[-1])
        room = width - GAP * (len(widths) - 1)
        while sum(widths) > room:
            giving = [at for at in range(len(widths)) if widths[at] > least[at]]
            if not giving:
                return None
            widths[max(giving, key=lambda at: widths[at])] -= 1
        for at, column in enumerate(self.columns):  # a title gets one line if there is room
            wanted = max(columns_of(line) for line in column.title.split("\n"))
            widths[at] += max(0, min(wanted - widths[at], room - sum(widths)))
        return widths

    def _row(self, row: Sequence[Text], widths: Sequence[int], *, bottom_aligned: bool = False) -> Iterator[Line]:
        cells = [wrapped(cell.text, width) for cell, width in zip(row, widths, strict=True)]
        height = max(map(len, cells))
        if bottom_aligned:
            cells = [[""] * (height - len(cell)) + cell for cell in cells]
        for number in range(height):
            line = list[Segment]()
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                text = cell[number] if number < len(cell) else ""
                room = " " * (width - columns_of(text))
                before = (" " * GAP if at else "") + (room if self.columns[at].right else "")
                line += [(before, ""), (text, row[at].style), ("" if self.columns[at].right else room, "")]
            yield line

    def _records(self, width: int) -> Iterator[Line]:
        """Each row as a record: its first value, and the others as pairs of title and value."""
        titles = [" ".join(column.title.split()) for column in self.columns]
        label_width = max((columns_of(title) for title in titles[1:]), default=0)
        for number, row in enumerate(self.rows):
            first = row[0]
            if number and first.text:
                yield []
            if first.text:
                yield from Text(first.text, first.style or "bold").lines(width)
            shown = [(Text(title), cell) for title, cell in zip(titles[1:], row[1:], strict=True) if cell.text]
            yield from Pairs(rows=shown, label_width=label_width + GAP).lines(width)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Names and values, side by side, or below each other if there is no room for sentences.

    Attributes:
        rows: Names and values.
        label_width: Minimum width of the names, including the gap after them.
    """

    rows: Sequence[tuple[Text, Text]]
    label_width: int = 0

    def lines(self, width: int) -> Iterator[Line]:
        longest = max((columns_of(label.text) for label, _ in self.rows), default=0)
        label_width = max(self.label_width, longest + GAP)
        room = width - label_width - GAP
        side_by_side = room >= min(_NARROWEST, max((columns_of(value.text) for _, value in self.rows), default=0))
        for label, value in self.rows:
            if side_by_side:
                padded = label.text + " " * (label_width - columns_of(label.text))
                for number, text in enumerate(wrapped(value.text, room)):
                    before = " " * label_width if number else padded
                    yield [(" " * GAP, ""), (before, label.style), (text, value.style)]
            else:
                yield from Text(f"  {label}", label.style).lines(width)
                for text in wrapped(value.text, width - 2 * GAP):
                    yield [(" " * 2 * GAP, ""), (text, value.style)]


def columns_of(text: str) -> int:
    """The number of terminal columns of a single line."""
    if text.isascii():
        return len(text)
    return sum(_columns_of_character(character) for character in text)


def _columns_of_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int) -> list[str]:
    """Its lines, broken between words, or within a word that is wider than a line. Indentation is kept."""
    lines = list[str]()
    for line in text.expandtabs().split("\n"):
        lines += [line.rstrip()] if columns_of(line.rstrip()) <= width else _wrapped_line(line.rstrip(), width)
    return lines


def _wrapped_line(line: str, width: int) -> list[str]:
    indentation = line[: len(line) - len(line.lstrip())]
    if len(indentation) > width // 2:
        indentation = ""
    lines, current = list[str](), ""
    for word in re.findall(r"\s*\S+", line):
        if columns_of(current + word) <= width:
            current += word
            continue
        if current.strip():
            lines.append(current)
            current = indentation + word.lstrip()
        else:
            current = indentation + word.lstrip()
        while columns_of(current) > width:
            head = _head(current, width)
            lines.append(head)
            current = indentation + current[len(head) :]
    return [*lines, current]


def _head(text: str, width: int) -> str:
    """The longest beginning that fits, at least one character."""
    end = min(len(text), width)
    while end > 1 and columns_of(text[:end]) > width:
        end -= 1
    return text[:end]
