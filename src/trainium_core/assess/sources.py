"""Selects and reads the files of a code base: Python, notebooks, shell, Dockerfiles, CUDA, manifests, weights."""

import ast
import json
import os
import re
import sys
import tokenize
import tomllib
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import Any

from trainium_core.facts import DATA

LARGEST_BYTES = 16_000_000
"""A larger file is reported and not read. Files of weights are only checked for Git LFS pointers."""

FILES: Mapping[str, Any] = tomllib.loads((DATA / "assess" / "files.toml").read_text(encoding="utf-8"))
"""Kinds of files by their names, folders that are skipped, and install options that a value follows."""

_LFS = b"version https://git-lfs"
_LARGEST_POINTER = 1024


def file_kind(path: Path) -> str:
    """The kind of a file by its name; empty if files with this name are not read."""
    for kind, patterns in FILES["kinds"].items():
        for pattern in patterns:
            name = f"{path.parent.name}/{path.name}" if "/" in pattern else path.name
            if fnmatchcase(name, pattern):
                return kind
    return ""


def is_excluded(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a glob fits the path, or the name of the file or of a folder in it."""
    names = (path.as_posix(), *path.parts)
    return any(fnmatchcase(name, pattern.rstrip("/")) for pattern in patterns for name in names)


def source_files(start: Path, exclude: Sequence[str] = ()) -> Iterator[Path]:
    """The files to read at a path, in order. If the path is a file, it is read regardless of its name.

    Args:
        start: The file or folder.
        exclude: Globs of paths, or of names of files and folders, below `start` that are not read.

    Raises:
        OSError: The path does not exist, or a folder cannot be listed.
    """
    if not start.is_dir():
        start.stat()
        yield start
        return

    def fail(error: OSError) -> None:
        raise error

    for folder, below, names in os.walk(start, onerror=fail):
        below[:] = sorted(
            name for name in below if not name.startswith(".") and name not in FILES["skipped_folders"]
            and not is_excluded(Path(folder, name).relative_to(start), exclude)
            and not os.path.lexists(Path(folder, name, "pyvenv.cfg"))
        )  # fmt: skip
        for name in sorted(names):
            path = Path(folder, name)
            if file_kind(path) and path.is_file() and not is_excluded(path.relative_to(start), exclude):
                yield path


class UnreadableSourceError(Exception):
    """A file, or a cell of a notebook, that could not be read. The message is the reason, without the file's name.

    Attributes:
        line: The line of the error, from 1; 0 if unknown.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        UnreadableSourceError: The file cannot be read, or is too large.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise UnreadableSourceError(f"is larger than {LARGEST_BYTES // 1_000_000} MB ({size:,} bytes)")
        return path.read_bytes()
    except OSError as error:
        raise UnreadableSourceError(error.strerror or str(error)) from error


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is a Git LFS pointer: its content was not fetched.

    Raises:
        OSError: The file cannot be read.
    """
    return path.stat().st_size <= _LARGEST_POINTER and path.read_bytes().startswith(_LFS)


def decoded(content: bytes) -> str:
    """The text of a file in the encoding of its coding comment or byte order mark, else in UTF-8.

    Raises:
        UnreadableSourceError: The content is not text in this encoding, or contains NUL.
    """
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise UnreadableSourceError("is not text in the encoding that it declares, or UTF-8") from error
    if "\0" in text:
        raise UnreadableSourceError("is not a text file: it contains a NUL character")
    return text


def source_lines(text: str) -> list[str]:
    """The lines of a text as Python counts them: unlike str.splitlines, a form feed does not end a line."""
    return (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")


@dataclass
class PythonSource:
    """The code of a Python file, or of all code cells of a notebook.

    Attributes:
        cells: Of a notebook, the first line of each code cell, and its number among the code cells, from 1.
        shell_lines: Of a notebook, the shell commands and magics, each with the number of its line in `text`.
        unreadable: Of a notebook, why a cell cannot be read, and the line in the cell; 0 if unknown.
    """

    text: str
    tree: ast.Module
    cells: Sequence[tuple[int, int]] = ()
    shell_lines: Sequence[tuple[int, str]] = ()
    unreadable: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def place(self, line: int) -> tuple[int, int]:
        """The cell and the line in it; cell 0 outside of notebooks."""
        at = bisect_right(self.cells, line, key=lambda cell: cell[0])
        if not at:
            return 0, line
        first, number = self.cells[at - 1]
        return number, line - first + 1


def python_source(content: bytes) -> PythonSource:
    """A file of Python code.

    Raises:
        UnreadableSourceError: The content is not text, or cannot be parsed.
    """
    text = decoded(content)
    return PythonSource(text, parsed(text))


def parsed(text: str) -> ast.Module:
    """The syntax tree of a text.

    Raises:
        UnreadableSourceError: The text cannot be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise UnreadableSourceError(f"is not Python {version}: {error.msg}", error.lineno or 0) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableSourceError(f"cannot be parsed: {error or 'nested too deeply'}") from error


def notebook_source(content: bytes) -> PythonSource:
    """The code cells of a notebook.

    Raises:
        UnreadableSourceError: The content is not text, or not a notebook of format 4.
    """
    try:
        cells: list[Any] = json.loads(decoded(content))["cells"]
        sources = [_cell_text(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableSourceError("is not a notebook of format 4") from error
    lines, places = list[str](), list[tuple[int, int]]()
    shell, unreadable = list[tuple[int, str]](), list[tuple[str, int]]()
    for number, source in enumerate(sources, 1):
        first = len(lines) + 1
        places.append((first, number))
        code, commands = _without_magics(source)
        shell += [(first + at, command) for at, command in commands]
        try:
            parsed("\n".join(code))
        except UnreadableSourceError as error:
            unreadable.append((f"cell {number} {error}", error.line))
            code = [""] * len(code)
        lines += code
    text = "\n".join(lines)
    return PythonSource(text, parsed(text), places, shell, unreadable)


def _cell_text(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)  # pyright: ignore[reportUnknownArgumentType]


def _without_magics(source: str) -> tuple[list[str], list[tuple[int, str]]]:
    """The lines of a cell without IPython's syntax, and the indices and texts of shell commands and magics."""
    lines = source.split("\n")
    with suppress(UnreadableSourceError):
        parsed(source)
        return lines, []  # Lines of Python may begin with `%` or `!=`.
    if source.startswith("%%"):
        is_shell = re.match(r"%%(bash|sh|script)", source)
        if not re.match(r"%%(time|timeit|capture|prun)\b", source):
            return [""] * len(lines), list(enumerate(lines[1:], 1)) if is_shell else []
        lines[0] = ""
    code, commands = list[str](), list[tuple[int, str]]()
    for at, line in enumerate(lines):
        magic = re.match(r"\s*[%!](.*)", line)
        if magic:
            commands.append((at, magic[1]))
            code.append(line[: len(line) - len(line.lstrip())] + "pass")
        elif re.match(r"\s*[\w.]+\?{1,2}\s*$|\s*\?", line):
            code.append("")
        elif command := _assigned_command(line):
            commands.append((at, command))
            code.append(f"{line.partition('=')[0]}= None")
        else:
            code.append(line)
    return code, commands


def _assigned_command(line: str) -> str:
    """The shell command or magic whose result a line assigns to names; empty if there is none."""
    names, _, value = line.partition("=")
    value = value.lstrip()
    return value[1:] if value.startswith(("!", "%")) and re.fullmatch(r"[\w, \t]+", names) else ""
