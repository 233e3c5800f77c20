"""Prints text, tables and JSON, without terminal control sequences and within the width of the screen."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, TextIO, cast

import click
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from trainium_cli.layout import Column, Pairs, Table, wrapped

LOCAL_PREFIX = "TRN_LOCAL_PREFIX"
"""The environment variable in which `trn local -- COMMAND` passes its own words to COMMAND."""
PIPE_COLUMNS = 120
_LEAST_COLUMNS = 20
_CONTROL = re.compile(
    r"\x1b\[(?![0-9;]*m)[0-?]*[ -/]*[@-~]"  # CSI sequences other than colours
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # terminal strings: titles, the clipboard
    r"|\x1b(?!\[[0-9;]*m).?"
    r"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Screen:
    """Standard output with a width in columns. No line is wider."""

    width: int
    has_colours: bool

    def print(self, shown: RenderableType = "", style: str = "") -> None:
        """Print a text or a renderable of rich, in a style where it has none."""
        echo(self.rendered(shown, style), colour=self.has_colours)

    def rendered(self, shown: RenderableType, style: str = "") -> str:
        """The output of `print`, without a line end. Uncoloured lines do not end in spaces."""
        drawn = io.StringIO()
        if isinstance(shown, str):
            shown = "\n".join(wrapped(with_prefix(shown), self.width))
        Console(
            file=drawn,
            width=self.width,
            color_system="standard" if self.has_colours else None,
            force_terminal=self.has_colours,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            _environ={},
        ).print(shown, style=style or None)
        lines = [line.rstrip() for line in drawn.getvalue().removesuffix("\n").split("\n")]
        return "\n".join(lines if _is_utf() else [line.replace("─", "-") for line in lines])


def console() -> Screen:
    """Standard output, as wide as `screen_width`.

    It has colours on a terminal, or with FORCE_COLOR; never with NO_COLOR, or if TERM is dumb or unknown.
    """
    return Screen(width=screen_width(), has_colours=_has_colours())


def screen_width() -> int:
    """Columns of the screen, at least 20: $COLUMNS, the terminal's width, or PIPE_COLUMNS without a terminal."""
    requested = os.environ.get("COLUMNS", "")
    if requested.isdigit() and int(requested):
        return max(int(requested), _LEAST_COLUMNS)
    for stream in (sys.stdout, sys.stderr):
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError, AttributeError):
            continue
        if columns and stream.isatty():
            return max(columns, _LEAST_COLUMNS)
    return PIPE_COLUMNS


def _is_utf() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def _has_colours() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


class WrappedStream:
    """Standard output or error with lines wrapped at the screen's width.

    In a pipe without $COLUMNS, lines are not wrapped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, unchanged if it moves the cursor."""
        if not _moves_cursor(text) and (self._stream.isatty() or os.environ.get("COLUMNS")):
            width = screen_width()
            lines = text.split("\n")
            if any(cell_len(line) > width for line in lines):
                text = "\n".join("\n".join(wrapped(line, width)) for line in lines)
        return self._stream.write(text)


def printable(text: str) -> str:
    """A text without control characters other than tabs and newlines, and without escape sequences other than colours.

    Log lines, reasons and names come from jobs and nodes, and could otherwise control the terminal.
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def with_prefix(text: str) -> str:
    """A text whose commands of trn and cdk in backticks are those that reach the same AWS.

    A command of `trn local -- COMMAND` reaches the embedded AWS, and without the prefix an account.
    """
    if LOCAL_PREFIX not in os.environ:
        return text
    return re.sub(r"`(?=(?:trn (?!local\b)|cdk ))", f"`{os.environ[LOCAL_PREFIX]} ", text)


def echo(
    text: str = "", *, err: bool = False, file: IO[Any] | None = None, colour: bool | None = None, dim: bool = False
) -> None:
    """Print a text without terminal control sequences. Commands print their results and messages with it."""
    shown = printable(with_prefix(text))
    click.echo(click.style(shown, dim=True) if dim else shown, file=file, err=err, color=colour)


def echo_verbatim(text: str, *, err: bool = False) -> None:
    """Print the words of a script or of a file, without terminal control sequences."""
    click.echo(printable(text), err=err)


def say(text: str) -> None:
    """Print sentences to standard output, wrapped at the screen's width as by `WrappedStream`."""
    echo(text, file=cast("TextIO", WrappedStream(sys.stdout)))


def question(text: str) -> str:
    """A question for `click.confirm` or `click.prompt`, wrapped with room for the answers of `click.confirm`."""
    return "\n".join(wrapped(text, screen_width() - len(" [y/N]: ")))


def _moves_cursor(text: str) -> bool:
    return "\x1b" in text or "\r" in text


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    wrapping: Sequence[str] = (),
) -> Table:
    """A plain table with a header.

    Cells are never cut: if the table does not fit, rows are shown as records.

    Args:
        columns: Titles.
        rows: Cells.
        right: Titles of right-aligned columns.
        wrapping: Titles of columns that wrap on a narrow screen.
    """
    drawn = [Column(title=column, right=column in right, wraps=column in wrapping) for column in columns]
    return Table(columns=drawn, rows=[[_text(cell) for cell in row] for row in rows])


def pairs(rows: Iterable[tuple[str, str]], *, label_width: int = 0) -> Pairs:
    """Names and values in two columns. `label_width` aligns several such tables."""
    return Pairs(rows=[(Text(label), _text(value)) for label, value in rows], label_width=label_width)


def _text(cell: str | Text) -> Text:
    return Text(with_prefix(cell)) if isinstance(cell, str) else cell


def shell_lines(command: str, *, indent: int = 2) -> str:
    """A command to copy, wrapped at the screen's width, with backslashes at line ends.

    It is broken only at spaces between arguments, and within the quotation marks of `bash -c`.
    """
    width = screen_width() - 2
    is_script = command.startswith("bash ")  # a backslash also joins lines within its quotation marks
    words = command.split(" ") if is_script else re.findall(r"(?:'[^']*'|[^' ])+", command)
    lines, current = list[str](), " " * indent + words[0]
    for word in words[1:]:
        if len(f"{current} {word}") > width:
            lines.append(f"{current} \\")
            current = " " * (indent + 4) + word
        else:
            current += f" {word}"
    return "\n".join([*lines, current])


def print_json(value: Any, *, indent: int | None = 2) -> None:
    # JSON has no NaN and Infinity, which a user's file may contain.
    finite = json.loads(json.dumps(value, default=str), parse_constant=str)
    echo_verbatim(json.dumps(finite, indent=indent))
