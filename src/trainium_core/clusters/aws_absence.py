"""Asks AWS why a cluster has no nodes: the index of tags, Auto Scaling, EC2."""

from typing import Any

from trainium_core.capacity.aws_capacity import AwsCapacity
from trainium_core.capacity.offerings import Reservation
from trainium_core.clusters.absence import NodeGroup
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.naming import CLUSTER_TAG, STOPPED_TAG
from trainium_runtime.tags import tag_values
from trainium_wire.formats import one_line

_LONGEST_REASON = 300


class AwsAbsences(AwsClustersAccount):
    """Implements trainium_core.clusters.absence.AbsenceAccount."""

    def stopped(self, cluster: str) -> str | None:
        filters = [{"Key": CLUSTER_TAG, "Values": [cluster]}, {"Key": STOPPED_TAG}]
        with read_errors("tag:GetResources"):
            found = self.client("resourcegroupstaggingapi").get_resources(TagFilters=filters)
            tags = (tag_values(one["Tags"]) for one in found["ResourceTagMappingList"])
            return next((given[STOPPED_TAG] for given in tags if STOPPED_TAG in given), None)
        return None

    def group(self, name: str) -> NodeGroup | None:
        client = self.client("autoscaling")
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            groups = client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
            if not groups:
                return None
            wanted: int = groups[0]["DesiredCapacity"]
        if not wanted:
            return NodeGroup(wanted=0)
        with read_errors("autoscaling:DescribeScalingActivities"):
            last: list[Any] = client.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=1)["Activities"]
            failed = last and last[0]["StatusCode"] in ("Failed", "Cancelled")
            refusal = one_line(last[0].get("StatusMessage", ""), _LONGEST_REASON) if failed else ""
            return NodeGroup(wanted=wanted, refusal=refusal)
        return None

    def reservation(self, reservation_id: str) -> Reservation | None:
        return AwsCapacity(self.region, clients=self._clients).reservation(reservation_id)
