"""The nodes of a deployed cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_runtime.errors import UnavailableError
from trainium_wire.membership import Membership
from trainium_wire.node_record import StoredRecord


class NodesNotMadeError(UnavailableError):
    """CloudFormation has not made the nodes' group yet, or has deleted it. status: of the stack."""

    def __init__(self, stack: str, status: str) -> None:
        super().__init__(f"the stack {stack} is in {status}: the group of its nodes is not there yet, or no more")
        self.status = status


@dataclass(frozen=True, kw_only=True)
class NodeInstance:
    """An instance of the cluster's group. `leaving`: Auto Scaling replaces it. `state`: EC2's word, such as running."""

    instance_id: str
    zone: str
    address: str
    state: str
    launched: datetime | None
    leaving: bool


@dataclass(frozen=True, kw_only=True)
class DeployedNodes:
    """What is known of the nodes now. `wanted`: how many the group is to have. `records`: of nodes past and present.

    suspended: processes of the group that do not run.
    """

    wanted: int
    instances: tuple[NodeInstance, ...]
    records: Mapping[str, StoredRecord]
    membership: Membership
    suspended: tuple[str, ...] = ()


class Nodes(Protocol):
    def nodes(self, stack: str) -> DeployedNodes | None:
        """None when there is no such stack."""
        ...
