"""Starts, reads and terminates the host of `trn precompile`."""

from dataclasses import dataclass
from datetime import UTC, datetime

from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_wire.formats import json_value, one_line
from trainium_wire.keys import PRECOMPILE_PREFIX, instance_of_key
from trainium_wire.node_record import LARGEST_RECORD

OVER = "over"
"""The state in the record of a host that has finished."""


@dataclass(frozen=True, kw_only=True)
class HostState:
    """The state of the host's Auto Scaling group.

    Attributes:
        wanted: Whether the desired size of the group is 1.
        instances: IDs of the instances in the group.
        refusal: Reason of the most recent failed launch since the time passed to `state`, if a host is wanted and the
            group has no instance; otherwise empty.
    """

    wanted: bool
    instances: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def is_gone(self) -> bool:
        return not self.wanted and not self.instances


_END = "end"
_LAUNCH = "Launching a new EC2 instance"
_LONGEST_REASON = 400
_ABSENT = ("NoSuchKey", "404", "NotFound", "AccessDenied")


class AwsPrecompileHost(AwsService):
    """The host of one cluster.

    Args:
        region: The region of the cluster.
        group: Name of the host's Auto Scaling group.
        bucket: Bucket of the node records.
        clients: Default: clients of boto3.
    """

    def __init__(self, region: str, group: str, bucket: str, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self._group, self._bucket = group, bucket

    def state(self, *, since: datetime | None = None) -> HostState | None:
        """The current state; None if the group does not exist.

        Args:
            since: Launch errors before this time are ignored. Default: all launch errors are ignored.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            found = self.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[self._group])
        if not found["AutoScalingGroups"]:
            return None
        (group,) = found["AutoScalingGroups"]
        wanted = bool(group["DesiredCapacity"])
        instances = tuple(instance["InstanceId"] for instance in group["Instances"])
        refusal = self._refusal(since) if wanted and not instances and since else ""
        return HostState(wanted=wanted, instances=instances, refusal=refusal)

    def start(self, until: datetime) -> None:
        """Schedule the end of the host, in case the caller does not call end(), and set the size of the group to 1.

        Args:
            until: When the size is set to 0.

        Raises:
            RequestRefusedError: Auto Scaling refused a request.
        """
        client = self.client("autoscaling")
        with write_errors("autoscaling:PutScheduledUpdateGroupAction"):
            client.put_scheduled_update_group_action(
                AutoScalingGroupName=self._group,
                ScheduledActionName=_END,
                StartTime=until.astimezone(UTC),
                DesiredCapacity=0,
            )
        with write_errors("autoscaling:UpdateAutoScalingGroup"):
            client.update_auto_scaling_group(AutoScalingGroupName=self._group, DesiredCapacity=1)

    def end(self) -> None:
        """Set the size of the group to 0, so that the host is terminated. Raises RequestRefusedError."""
        with write_errors("autoscaling:UpdateAutoScalingGroup"):
            self.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=self._group, DesiredCapacity=0)

    def failure(self, instance_id: str) -> str:
        """The reason that a host reported for not starting.

        Empty if it reported none, or if the report is invalid or may not be read.

        Raises:
            UnavailableError: A request failed for another reason.
        """
        client = self.client("s3")
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {self._bucket}", absent=_ABSENT):
            pages = client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=f"{PRECOMPILE_PREFIX}/"
            )
            listed = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
            key = next((key for key in listed if instance_of_key(key, PRECOMPILE_PREFIX) == instance_id), None)
            if key is None:
                return ""
            body = client.get_object(Bucket=self._bucket, Key=key)["Body"].read(LARGEST_RECORD)
            try:
                report = json_value(body)
                if report["state"] == "failed":
                    return one_line(str(report["reason"]), _LONGEST_REASON)
            except (ValueError, LookupError, TypeError):
                pass
        return ""

    def _refusal(self, since: datetime) -> str:
        with read_errors("autoscaling:DescribeScalingActivities"):
            found = self.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=self._group)
        for activity in found["Activities"]:
            launched = activity["Description"].startswith(_LAUNCH) and activity["StartTime"] >= since
            if launched and activity["StatusCode"] == "Failed":
                return one_line(activity.get("StatusMessage", ""), _LONGEST_REASON)
        return ""
