"""CloudFormation stacks."""

from typing import Protocol


class Stacks(Protocol):
    def stack_status(self, name: str) -> str | None: ...
