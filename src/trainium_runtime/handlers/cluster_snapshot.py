"""The state that the clock of a pilot reads in one run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainium_runtime.pilot_clock import CapacityBlock

from .pilot_notices import PilotNotices


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """The cluster during one run of the clock. stack, group: as AWS describes them; group: None without one.

    by_gate: whether the fleet gate is the caller, so a deployment waits for nodes.
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
    found = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return found[0] if found else None


def find_capacity_block(ec2: Any, block_id: str) -> CapacityBlock | None:
    """None if EC2 does not have it."""
    from botocore.exceptions import ClientError

    try:
        found = ec2.describe_capacity_reservations(CapacityReservationIds=[block_id])["CapacityReservations"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidCapacityReservationId.NotFound":
            raise
        return None
    if not found:
        return None
    return CapacityBlock(
        block_id=block_id,
        instance_type=found[0]["InstanceType"],
        begins=found[0]["StartDate"],
        ends=found[0]["EndDate"],
        state=found[0]["State"],
    )
