"""Whose account it is."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Identity:
    """`endpoint` is where the answer came from when that is not AWS, else None."""

    account: str
    arn: str
    endpoint: str | None = None


class Identities(Protocol):
    def identity(self) -> Identity: ...
