"""Reads a TOML file that a user writes, and collects its problems instead of stopping at the first."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from sys import float_info
from typing import Any

from trainium_core.plurals import count
from trainium_core.problems import nearest


class TomlFileError(ValueError):
    """Problems in a file, one sentence each without a period."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)

    def listed(self, file: object) -> str:
        """A line with the file's name, and a line for each problem."""
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{file} has {count(len(self.problems), 'mistake')}:{lines}"


def parse_toml(text: str) -> dict[str, Any]:
    """The document in a text.

    Raises:
        TomlFileError: The text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TomlFileError([f"the file is not TOML: {error}"]) from error


class TomlReader:
    """Reads values, and collects the problems with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def value(
        self,
        table: Mapping[str, Any],
        key: str,
        prefix: str,
        is_valid: Callable[[Any], bool],
        expected: str,
        *,
        required: bool = False,
    ) -> Any:
        """The value of a key; None if it is missing or not valid.

        Args:
            table: The table.
            key: The key in it.
            prefix: The place of the table in the file, such as "sides.gpu.".
            is_valid: Whether a value is valid.
            expected: A valid value, in words.
            required: Whether a missing value is a problem.
        """
        value = table.get(key)
        if is_valid(value) if value is not None else not required:
            return value
        shown = "missing" if value is None else repr(value)
        self.problems.append(f"{prefix}{key} is {shown}; it must be {expected}")
        return None

    def text(self, table: Mapping[str, Any], key: str, prefix: str, *, required: bool = False) -> Any:
        """The text of a key, which must not be empty; None if it is missing or not valid."""
        expected = "a text that is not empty"
        return self.value(
            table, key, prefix, lambda value: isinstance(value, str) and value != "", expected, required=required
        )

    def table(self, table: Mapping[str, Any], key: str, prefix: str, *, required: bool = False) -> Mapping[str, Any]:
        """The table of a key; empty if it is missing or not valid."""
        return self.value(table, key, prefix, lambda value: isinstance(value, dict), "a table", required=required) or {}

    def only(self, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
        """Add a problem for each unknown key of a table."""
        for key in table:
            if key not in known:
                close = nearest(key, known)
                meant = f"; nearest: {close}" if close else ""
                self.problems.append(f"{prefix}{key} is not a known key{meant}; allowed: {', '.join(known)}")


def is_number(value: object) -> bool:
    """Whether a value is a finite number that fits into a float. Booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max
