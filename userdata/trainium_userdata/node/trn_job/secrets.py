"""The secrets of a job, stored only in the environment of its processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

HIDDEN = "***"
SHORTEST = 4
"""Minimum number of characters to hide in the log: shorter values would hide parts of ordinary words."""


class Secrets:
    """The secrets of a job.

    Args:
        arns: ARNs by variable name.
        value_of: Returns the value for an ARN, or raises OSError with the reason.

    Attributes:
        environment: After `fetch`, the values by variable name.
        hidden: After `fetch`, the texts to mask.
    """

    def __init__(self, arns: Mapping[str, str], value_of: Callable[[str], str]) -> None:
        self._arns, self._parameter_value = arns, value_of
        self.hidden: list[str] = []
        self.environment: dict[str, str] = {}

    def fetch(self) -> None:
        """Read the values. Raises OSError with the name of the variable."""
        for name, arn in self._arns.items():
            try:
                value = self._parameter_value(arn)
            except OSError as error:
                raise OSError(f"the secret {name}: {error}") from None
            if "\0" in value:
                raise OSError(f"the secret {name}: its value contains a null byte, which no variable can contain")
            self.environment[name] = value
        lines = {line.strip() for value in self.environment.values() for line in value.splitlines()}
        # The longest first, because one may be part of another.
        self.hidden = sorted((line for line in lines if len(line) >= SHORTEST), key=len, reverse=True)

    def masked(self, line: str) -> str:
        """A line of output in which HIDDEN replaces the texts in `hidden`."""
        for value in self.hidden:
            line = line.replace(value, HIDDEN)
        return line
