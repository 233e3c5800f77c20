"""A stack that is deployed: what CloudFormation describes of it, and what its template says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class DeployedStack:
    """A stack that exists."""

    stack_id: str
    status: str
    created: datetime
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class StackNetwork:
    """The network that a stack has made. zone_id: of its subnets. cidr: addresses of its VPC.

    has_lustre: whether an FSx for Lustre file system is in it, which a new network would replace with an empty one.
    """

    zone_id: str
    cidr: str
    has_lustre: bool = False


@dataclass(frozen=True, kw_only=True)
class StackContents:
    """What a stack holds. cluster: by its tags, or None. network: None if it has none of its own."""

    cluster: str | None
    network: StackNetwork | None = None


class Stacks(Protocol):
    def deployed_stack(self, name: str) -> DeployedStack | None:
        """None when there is no such stack."""
        ...

    def stack_contents(self, stack: DeployedStack) -> StackContents:
        """By the template of the stack."""
        ...
