"""CloudFormation stacks."""

from datetime import datetime
from typing import Protocol


class Stacks(Protocol):
    def stack_status(self, name: str) -> str | None: ...

    def stack_cluster(self, name: str) -> str | None:
        """The cluster whose stack it is; None when it is not there, or nothing in it says so."""
        ...

    def stack_created(self, name: str) -> datetime | None:
        """None when it is not there."""
        ...
