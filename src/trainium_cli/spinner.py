"""A line on a terminal that moves: what goes on, and for how long already."""

import time
from typing import TYPE_CHECKING

from trainium_cli.quantities import running_for

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text


class Spinner:
    """On standard error, from `start` to `stop`. rich is imported only then: most commands end before."""

    def __init__(self, message: str = "") -> None:
        self._message, self._since = message, time.monotonic()
        self._status: Status | None = None

    def start(self) -> None:
        from rich.console import Console
        from rich.status import Status

        self._status = Status(self, console=Console(stderr=True, highlight=False, markup=False, emoji=False))
        self._status.start()

    def show(self, message: str, *, since: float | None = None) -> None:
        """Change the message. since: when what it tells has begun, by the monotonic clock; default as before."""
        self._message, self._since = message, self._since if since is None else since

    def print(self, text: str) -> None:
        """Show a text above the line, which stays."""
        if self._status:
            self._status.console.print(text)

    def stop(self) -> None:
        if self._status:
            self._status.stop()

    def __rich__(self) -> "Text":
        """What rich shows; it asks again several times a second."""
        from rich.text import Text

        return Text(self._message and f"{self._message} ({elapsed(self._since)})")


def elapsed(since: float) -> str:
    """How long something goes on, by the monotonic clock."""
    return running_for(round(time.monotonic() - since))
