"""Shows the progress of long commands: a spinner on a terminal, a few plain lines elsewhere."""

import sys
import time
from threading import Condition, Thread
from types import TracebackType

from trainium_cli.terminal import echo
from trainium_cli.waiting import Spinner, elapsed

SECONDS_A_LINE = 30
"""Seconds between lines about a running step, if lines cannot be overwritten."""

QUIET_SECONDS = 2
"""Seconds until the first line about a running step."""


class ProgressReporter:
    """Shows the progress and duration of the current step on standard error."""

    def __init__(self) -> None:
        self._spinner = Spinner() if sys.stderr.isatty() else None
        self._step, self._message, self._begun, self._next_line_at = "", "", 0.0, 0.0
        self._changed, self._over = Condition(), False
        self._repeater = Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> "ProgressReporter":
        if self._spinner:
            self._spinner.start()
        else:
            self._repeater.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._spinner:
            self._spinner.stop()
        else:
            self._repeater.join()

    def report(self, step: str, message: str, *, ended: bool = False) -> None:
        """Report the progress of a step, or its end, which is shown at once."""
        now = time.monotonic()
        with self._changed:
            if step != self._step:
                self._step, self._begun, self._next_line_at = step, now, now + QUIET_SECONDS
            self._message = "" if ended else message
            if ended:
                self._print(f"  {step}: {message}")
            elif self._spinner:
                self._spinner.show(f"{step}: {message}", since=self._begun)
            self._changed.notify()

    def _repeat(self) -> None:
        """Print the current step periodically, without a terminal."""
        with self._changed:
            while not self._over:
                if self._message and time.monotonic() >= self._next_line_at:
                    self._print(f"  {self._step}: {self._message} ({elapsed(self._begun)})")
                    self._next_line_at = time.monotonic() + SECONDS_A_LINE
                self._changed.wait(self._next_line_at - time.monotonic() if self._message else None)

    def _print(self, text: str) -> None:
        if self._spinner:
            self._spinner.print(text)
        else:
            echo(text, err=True)
