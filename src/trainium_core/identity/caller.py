"""The identity of the AWS credentials, as a protocol."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Identity:
    """`endpoint`: the endpoint that answered, if it is not AWS, else None."""

    account: str
    arn: str
    endpoint: str | None = None


class Identities(Protocol):
    def identity(self) -> Identity: ...
