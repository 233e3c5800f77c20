"""What a person sees while AWS is asked: nothing at first, a line that moves when it takes longer."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

DELAY_SECONDS = 1


@contextmanager
def waiting(message: str) -> Generator[Callable[[str], None]]:
    """Show the message on standard error after DELAY_SECONDS, and take it away at the end; on a terminal only.

    What it gives changes the message.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    line = _Spinner(message)
    timer = Timer(DELAY_SECONDS, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield line.update
    finally:
        timer.cancel()
        timer.join()  # it may just be starting the line
        line.stop()


class _Spinner:
    """A message that moves, from `start` to `stop`. rich is imported only then: most commands end before."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._status: Status | None = None

    def start(self) -> None:
        from rich.console import Console
        from rich.markup import escape

        self._status = Console(stderr=True, highlight=False).status(escape(self._message))
        self._status.start()

    def update(self, message: str) -> None:
        self._message = message
        if self._status:
            from rich.markup import escape

            self._status.update(escape(message))

    def stop(self) -> None:
        if self._status:
            self._status.stop()
