"""A deployed stack, from CloudFormation's description and the template."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

STABLE_STATUSES = frozenset(
    {
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "IMPORT_COMPLETE",
        "IMPORT_ROLLBACK_COMPLETE",
    }
)
"""Statuses of a stack that can be updated. Source: "last known stable state" of the RollbackStack API, 2026-11-27."""


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
    """The network that a stack created.

    Attributes:
        zone_id: Availability Zone ID of the subnets.
        cidr: IPv4 block of the VPC.
        has_lustre: Whether the stack contains an FSx for Lustre file system. CloudFormation would replace the file
            system with an empty one if it replaced the network.
    """

    zone_id: str
    cidr: str
    has_lustre: bool = False


@dataclass(frozen=True, kw_only=True)
class StackContents:
    """The content of a stack.

    Attributes:
        cluster: The cluster in the tags of the stack or its resources, if any.
        network: The network that the stack created, if any.
    """

    cluster: str | None
    network: StackNetwork | None = None
