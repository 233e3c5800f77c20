"""CloudFormation stacks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class StackNetwork:
    """The network that a stack has made. zone_id: of its subnets. cidr: addresses of its VPC.

    lustre_is_deleted: whether it has an FSx for Lustre file system that is deleted, with its data, when it is replaced.
    """

    zone_id: str
    cidr: str
    lustre_is_deleted: bool = False


class Stacks(Protocol):
    def stack_status(self, name: str) -> str | None: ...

    def stack_cluster(self, name: str) -> str | None:
        """The cluster whose stack it is; None when it is not there, or nothing in it says so."""
        ...

    def stack_network(self, name: str) -> StackNetwork | None:
        """None when it is not there, or has no network of its own."""
        ...

    def stack_created(self, name: str) -> datetime | None:
        """None when it is not there."""
        ...
