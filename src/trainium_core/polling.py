"""Polls AWS until an operation has ended."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from trainium_runtime.errors import UnavailableError

Value = TypeVar("Value")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
UNANSWERED = 3
"""The number of consecutive failed polls that ends polling. A short loss of the network does not end it."""


@dataclass
class Polling:
    """Counts failed polls, and pauses between polls.

    Each pause is 1.5 times as long as the one before it, up to a maximum.

    Attributes:
        pause: Waits for a number of seconds.
        shortest: Seconds of the first pause.
        longest: Maximum seconds of a pause.
        unanswered: Number of consecutive failed polls that ends polling.
    """

    pause: Callable[[float], None]
    shortest: float = SHORTEST_PAUSE
    longest: float = LONGEST_PAUSE
    unanswered: int = UNANSWERED
    _seconds: float = field(default=0.0, init=False)
    _in_a_row: int = field(default=0, init=False)

    def wait(self) -> None:
        """Wait until the next poll."""
        self._seconds = min(max(self._seconds * 1.5, self.shortest), self.longest)
        self.pause(self._seconds)

    @contextmanager
    def poll(self, on_unanswered: Callable[[str], None] | None = None) -> Generator[None]:
        """A context for one poll, which suppresses UnavailableError until too many polls in a row have failed.

        Args:
            on_unanswered: Called with a message for each suppressed error.

        Raises:
            UnavailableError: Too many polls in a row have failed.
        """
        try:
            yield
        except UnavailableError as error:
            self._in_a_row += 1
            if self._in_a_row >= self.unanswered:
                raise
            if on_unanswered is not None:
                on_unanswered(f"not read, retrying: {error}")
        else:
            self._in_a_row = 0


def poll_values(
    read: Callable[[], Value | None], *, absent: str, pause: Callable[[float], None], seconds: float, unanswered: int
) -> Iterator[Value]:
    """Yield values without end, each read when the caller asks for it.

    Args:
        read: Reads a value; None if it does not exist.
        absent: Error message for a value that does not exist.
        pause: Waits for a number of seconds.
        seconds: The pause after an error.
        unanswered: Number of consecutive errors that ends polling.

    Raises:
        UnavailableError: Too many errors in a row, or the value does not exist.
    """
    polling = Polling(pause, shortest=seconds, longest=seconds, unanswered=unanswered)
    while True:
        answers: list[Value | None] = []
        with polling.poll():
            answers.append(read())
        if not answers:
            polling.wait()
        for value in answers:
            if value is None:
                raise UnavailableError(absent)
            yield value
