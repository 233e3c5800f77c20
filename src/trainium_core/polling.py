"""Polls AWS until an operation has ended."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from trainium_runtime.errors import UnavailableError

Value = TypeVar("Value")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
UNANSWERED = 3
"""Consecutive failed polls until polling ends, enough for a change of network."""


@dataclass
class Polling:
    """Counts failed polls, and pauses between polls, each time 1.5 times longer.

    Attributes:
        pause: Waits for a number of seconds.
        shortest: Seconds of the first pause.
        longest: Seconds of the longest pause.
        unanswered: Failed polls in a row that end the polling.
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
        """A context for one poll. A failed poll is reported, and the next one may succeed.

        Raises UnavailableError after too many failed polls in a row.
        """
        try:
            yield
        except UnavailableError as error:
            self._in_a_row += 1
            if self._in_a_row >= self.unanswered:
                raise
            if on_unanswered is not None:
                on_unanswered(f"no answer, retrying: {error}")
        else:
            self._in_a_row = 0


def poll_values(
    read: Callable[[], Value | None], *, absent: str, pause: Callable[[float], None], seconds: float, unanswered: int
) -> Iterator[Value]:
    """Yield the results of a read, one for each request of the caller.

    Args:
        read: Reads a value; None if it does not exist.
        absent: The error message for None.
        pause: Waits for a number of seconds.
        seconds: The pause after an error.
        unanswered: Errors in a row that end the polling.

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
