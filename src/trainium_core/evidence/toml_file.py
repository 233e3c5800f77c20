"""Reads a TOML file that a user writes, and collects its problems instead of stopping at the first."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from trainium_core.problems import nearest


class TomlFileError(ValueError):
    """Problems in a file, one sentence each without a period."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)

    def listed(self, file: object) -> str:
        """The problems below a line with the file's name."""
        count = len(self.problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{file} has {count} mistake{'' if count == 1 else 's'}:{lines}"


def parse_toml(text: str) -> dict[str, Any]:
    """Raises TomlFileError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlFileError([f"is not TOML: {error}"]) from error


class TomlReader:
    """Reads values. `problems` has what was wrong so far."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def table(self, value: Any, place: str) -> Mapping[str, Any]:
        """A table; an empty one with a problem for another value. place: of the value in the file."""
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        self.problems.append(f"{place} is {'missing' if value is None else repr(value)}; it must be a table")
        return {}

    def only(self, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
        """Add a problem for each unknown key of a table. prefix: of its keys, such as "sides.gpu."."""
        for key in table:
            if key not in known:
                close = nearest(key, known)
                meant = f"; nearest: {close}" if close else ""
                self.problems.append(f"{prefix}{key} is not a known key{meant}; allowed: {', '.join(known)}")
