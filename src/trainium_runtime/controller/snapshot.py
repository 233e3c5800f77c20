"""A snapshot of the cluster, read once per look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainium_runtime.node_store import Group, StoredMembership
from trainium_runtime.pilot_clock import CapacityBlock, Memory
from trainium_wire.membership import Membership
from trainium_wire.node_record import StoredRecord, failures

NO_MEMBERSHIP = StoredMembership(membership=Membership(), etag=None)


@dataclass(frozen=True, kw_only=True)
class StackSnapshot:
    """The stack, as CloudFormation describes it.

    Attributes:
        reason: Reason of the status; empty if CloudFormation gives none.
    """

    status: str
    created: datetime
    updated: datetime | None = None
    reason: str = ""

    @property
    def settled(self) -> bool:
        """Whether no operation on the stack is in progress."""
        return not self.status.endswith("_IN_PROGRESS")

    @property
    def is_rolling_back(self) -> bool:
        """Whether the stack is being rolled back, or was rolled back by its last operation."""
        return "ROLLBACK" in self.status


@dataclass(frozen=True, kw_only=True)
class PilotSnapshot:
    """The state of the pilot.

    Attributes:
        memory: What earlier looks stored. None: it could not be read, so earlier notices are unknown.
        block: The Capacity Block of the nodes. None if there is none, if EC2 does not have it, or after the end.
        idle_since: Since when the nodes are unused. None if they are in use, or if this is unknown or does not matter.
        errors: Why parts of the state could not be read. Nodes stop at the end even without these parts.
    """

    memory: Memory | None = field(default_factory=Memory)
    block: CapacityBlock | None = None
    idle_since: datetime | None = None
    errors: Sequence[Exception] = ()


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The cluster at one moment.

    Attributes:
        now: The time of the look.
        group: The nodes' Auto Scaling group. None if it does not exist, or if a service runs the nodes.
        instances: EC2's descriptions of the group's instances by ID, including earlier ones.
        records: Node records by instance ID, including those of earlier instances.
        membership: The membership, read before the group, so that what is derived from both is never older.
        stack: The stack. None if the look did not read it.
        pilot: The state of the pilot. None if the look did not read it.
        activities: Scaling activities of the group, newest first. Read only while a deployment waits for nodes.
        consoles: The last error on the console of nodes without a record, by instance ID. Read as `activities`.
    """

    now: datetime
    group: Group | None = None
    instances: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    records: Mapping[str, StoredRecord] = field(default_factory=dict[str, StoredRecord])
    membership: StoredMembership = NO_MEMBERSHIP
    stack: StackSnapshot | None = None
    pilot: PilotSnapshot | None = None
    activities: Sequence[Mapping[str, Any]] = ()
    consoles: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def failures(self) -> Mapping[str, datetime]:
        """When each failed instance reported its failure."""
        return failures(self.records)

    @property
    def desired(self) -> int:
        return self.group.desired if self.group else 0

    @property
    def nodes_left(self) -> int:
        """Number of the group's instances, including those that are being terminated."""
        return self.group.total if self.group else 0
