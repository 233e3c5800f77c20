"""Waiting for something to become true, with a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


class TooLateError(Exception):
    """Something did not become true in time."""


def wait_for(what: str, ask: Callable[[], Answer | None], *, seconds: float = 120) -> Answer:
    """The first answer that is neither None nor False. Raises TooLateError with what was waited for."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise TooLateError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)
    return answer
