"""Polling AWS until something has ended."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from trainium_runtime.errors import UnavailableError

Value = TypeVar("Value")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
UNANSWERED = 3
"""Polls in a row that may have no answer before one gives up: a laptop changes its network."""


@dataclass
class Polling:
    """The pauses between polls, in seconds, each 1.5 times the one before; and how many polls in a row had no answer.

    pause: waits for so many seconds. unanswered: how many polls in a row end the polling.
    """

    pause: Callable[[float], None]
    shortest: float = SHORTEST_PAUSE
    longest: float = LONGEST_PAUSE
    unanswered: int = UNANSWERED
    _seconds: float = field(default=0.0, init=False)
    _in_a_row: int = field(default=0, init=False)

    def wait(self) -> None:
        """Until the next poll is due."""
        self._seconds = min(max(self._seconds * 1.5, self.shortest), self.longest)
        self.pause(self._seconds)

    @contextmanager
    def poll(self, on_unanswered: Callable[[str], None] | None = None) -> Generator[None]:
        """Around one poll: one without an answer is told, and the next may have one.

        Raises UnavailableError when it was one too many in a row.
        """
        try:
            yield
        except UnavailableError as error:
            self._in_a_row += 1
            if self._in_a_row >= self.unanswered:
                raise
            if on_unanswered is not None:
                on_unanswered(f"no answer, asking again: {error}")
        else:
            self._in_a_row = 0


def polled(
    read: Callable[[], Value | None], *, absent: str, pause: Callable[[float], None], seconds: float, unanswered: int
) -> Iterator[Value]:
    """What `read` returns, each time that the caller wants the next; after an error it is read again in `seconds`.

    Raises UnavailableError after `unanswered` errors in a row, and with the message `absent` for None.
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
