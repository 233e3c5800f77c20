"""The state that the clock of a pilot reads in one run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainium_runtime.pilot_clock import CapacityBlock

from .pilot_notices import PilotNotices


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """The cluster during one run of the clock.

    Attributes:
        now: The time of the run.
        stack: The stack as CloudFormation describes it.
        group: The nodes' Auto Scaling group as AWS describes it. None if the clock has no group.
        notices: The topic of the pilot, which also stores the state of the clock.
        by_gate: Whether the fleet gate is the caller, so a deployment waits for nodes.
    """

    now: datetime
    stack: Mapping[str, Any]
    group: Mapping[str, Any] | None
    notices: PilotNotices
    by_gate: bool

    @property
    def settled(self) -> bool:
        """Whether no operation on the stack is in progress."""
        return not self.stack["StackStatus"].endswith("_IN_PROGRESS")

    @property
    def desired(self) -> int:
        return self.group["DesiredCapacity"] if self.group else 0

    @property
    def nodes_left(self) -> int:
        return len(self.group["Instances"]) if self.group else 0


def find_group(autoscaling: Any, name: str) -> Mapping[str, Any] | None:
    groups = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return groups[0] if groups else None


def find_capacity_block(ec2: Any, block_id: str) -> CapacityBlock | None:
    """EC2's description of a Capacity Block. None if EC2 does not have it."""
    from botocore.exceptions import ClientError

    try:
        reservations = ec2.describe_capacity_reservations(CapacityReservationIds=[block_id])["CapacityReservations"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidCapacityReservationId.NotFound":
            raise
        return None
    if not reservations:
        return None
    return CapacityBlock(
        block_id=block_id,
        instance_type=reservations[0]["InstanceType"],
        begins=reservations[0]["StartDate"],
        ends=reservations[0]["EndDate"],
        state=reservations[0]["State"],
    )
