"""The identity of the AWS credentials, and the protocol that reads it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of the AWS credentials.

    Attributes:
        account: Account ID.
        arn: ARN of the user, or of the session of a role.
        endpoint: URL of the endpoint that answered, such as an emulator's; None for AWS.
    """

    account: str
    arn: str
    endpoint: str | None = None


class Identities(Protocol):
    def identity(self) -> Identity:
        """The identity of the credentials.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        ...
