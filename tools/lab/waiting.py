"""Waits for a condition, with a time limit."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


class TimedOutError(Exception):
    """A condition was not met in time."""


def wait_for(
    description: str, condition: Callable[[], Value | None], *, seconds: float = 600, pause: float = 0.1
) -> Value:
    """Call the condition until it returns a true value, and return this value.

    Raises:
        TimedOutError: The condition returned no true value in time.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimedOutError(f"{description}: not within {seconds:.0f} s")
        time.sleep(pause)
    return value
