"""A step of a teardown: it reads the state and makes the calls that are left to do, as often as it is asked."""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a step is, in words for people.

    waiting: AWS is at work. working: this step has done a part, and can go on at once. stuck: it cannot end.
    """

    state: Literal["done", "working", "waiting", "stuck"]
    message: str


class Step(Protocol):
    """Keeps nothing that it could not find out again: a teardown that was interrupted begins anew and goes on."""

    @property
    def name(self) -> str: ...

    def advance(self) -> Progress:
        """Raises UnavailableError and RequestRefusedError."""
        ...


def count(number: int, what: str) -> str:
    """A number of things, such as `1 node` and `2 nodes`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
