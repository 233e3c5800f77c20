"""What a person sees while AWS is asked: nothing at first, a line that moves when it takes longer."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer

from trainium_cli.spinner import Spinner

DELAY_SECONDS = 1


@contextmanager
def waiting(message: str) -> Generator[Callable[[str], None]]:
    """Show the message, and for how long, on standard error after DELAY_SECONDS, until the end; on a terminal only.

    What it gives changes the message.
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
        timer.join()  # it may just be starting the line
        line.stop()
