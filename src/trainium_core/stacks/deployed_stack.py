"""A deployed stack: CloudFormation's description and its template."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class DeployedStack:
    """An existing stack."""

    stack_id: str
    status: str
    created: datetime
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class StackNetwork:
    """The network that a stack created. zone_id: of its subnets. cidr: of its VPC.

    has_lustre: whether it contains an FSx for Lustre file system, which a new network would replace with an empty one.
    """

    zone_id: str
    cidr: str
    has_lustre: bool = False


@dataclass(frozen=True, kw_only=True)
class StackContents:
    """The content of a stack. cluster: from its tags, or None. network: None if it created none."""

    cluster: str | None
    network: StackNetwork | None = None


class Stacks(Protocol):
    def deployed_stack(self, name: str) -> DeployedStack | None:
        """None if the stack does not exist."""
        ...

    def stack_contents(self, stack: DeployedStack) -> StackContents:
        """From the template of the stack."""
        ...
