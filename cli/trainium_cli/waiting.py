"""What a person sees while AWS is asked: nothing at first, a line that moves when it takes longer."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console

DELAY_SECONDS = 1


@contextmanager
def waiting(message: str) -> Generator[Callable[[str], None]]:
    """Show the message on standard error after DELAY_SECONDS, and take it away at the end; on a terminal only.

    What it gives changes the message.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    status = Console(stderr=True, highlight=False).status(message)
    timer = Timer(DELAY_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield status.update
    finally:
        timer.cancel()
        timer.join()  # it may just be starting the status
        status.stop()
