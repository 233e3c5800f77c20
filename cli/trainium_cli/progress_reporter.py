"""What a person sees while a command takes minutes: a spinner on a terminal, a few plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.status import Status

_SECONDS_A_LINE = 30
"""How long a step may go on without a new line where a line cannot be overwritten."""

_QUIET_SECONDS = 2
"""How long a step may take before a line is printed of it besides its end."""


class ProgressReporter:
    """Shows how far a command is, on standard error. A new step is shown at once, and so is its end."""

    def __init__(self) -> None:
        self._status = _spinner() if sys.stderr.isatty() else None
        self._step, self._step_begun, self._next_line_at = "", 0.0, 0.0

    def __enter__(self) -> "ProgressReporter":
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def report(self, step: str, message: str, *, ended: bool = False) -> None:
        """What a step is at, or how it ended."""
        now = time.monotonic()
        if step != self._step:
            self._step, self._step_begun, self._next_line_at = step, now, now + _QUIET_SECONDS
        if ended:
            self._line(f"  {step}: {message}")
        elif self._status:
            self._status.update(_plain(f"{step}: {message} ({round(now - self._step_begun)} s)"))
        elif now >= self._next_line_at:
            self._line(f"  {step}: {message}")
            self._next_line_at = now + _SECONDS_A_LINE

    def _line(self, text: str) -> None:
        if self._status:
            self._status.console.print(text)
        else:
            click.echo(text, err=True)


def _spinner() -> "Status":
    from rich.console import Console  # late: it takes long to import, and off a terminal nobody needs it

    return Console(stderr=True, highlight=False, markup=False, emoji=False).status("")


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
