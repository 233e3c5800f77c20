"""Shows that a request to AWS is in progress: nothing at first, then a spinner."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.status import Status
from rich.text import Text

from trainium_cli.quantities import duration_to_the_second
from trainium_cli.terminal import printable

DELAY_SECONDS = 1


@contextmanager
def waiting(message: str) -> Generator[Callable[[str], None]]:
    """Show the message and the elapsed time on standard error after DELAY_SECONDS; on a terminal only.

    Yields a function that changes the message.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    line = Spinner(message)
    timer = Timer(DELAY_SECONDS, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield line.show
    finally:
        timer.cancel()
        timer.join()  # it may be starting just now
        line.stop()


class Spinner:
    """A spinner on standard error, from `start` to `stop`."""

    def __init__(self, message: str = "") -> None:
        self._message, self._since = message, time.monotonic()
        self._status: Status | None = None

    def start(self) -> None:
        self._status = Status(self, console=Console(stderr=True, highlight=False, markup=False, emoji=False))
        self._status.start()

    def show(self, message: str, *, since: float | None = None) -> None:
        """Change the message, and the time from which it counts, by the monotonic clock."""
        self._message, self._since = message, self._since if since is None else since

    def print(self, text: str) -> None:
        """Print a text above the spinner."""
        if self._status:
            self._status.console.print(printable(text))

    def stop(self) -> None:
        if self._status:
            self._status.stop()

    def __rich__(self) -> Text:
        """The current line, which rich requests several times per second."""
        return Text(self._message and f"{printable(self._message)} ({elapsed(self._since)})")


def elapsed(since: float) -> str:
    """The time since `since`, a time of the monotonic clock."""
    return duration_to_the_second(round(time.monotonic() - since))
