"""How EBS encrypts what is new."""

from typing import Protocol


class Volumes(Protocol):
    def default_volume_key(self) -> str | None:
        """The customer's key that new volumes are encrypted with by default; None when it is AWS's."""
        ...
