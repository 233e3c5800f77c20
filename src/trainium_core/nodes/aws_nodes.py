"""Reads the nodes of a deployed cluster: its stack, Auto Scaling group, instances and records."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.nodes.report import DeployedNodes, NodeInstance, NodesNotCreatedError
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.node_store import Group, NodeStore, NoGroupError, describe_group, describe_instances
from trainium_runtime.usage import ClusterUsage
from trainium_runtime.usage_store import read_usage
from trainium_wire.keys import RECORDS_PREFIX


class AwsUsage(AwsService):
    def usage(self, bucket: str, instances: Collection[str], *, now: datetime) -> ClusterUsage:
        """The use of nodes, from the bucket of their records. Raises UnavailableError."""
        with read_errors(f"s3:GetObject on the bucket {bucket}"):
            try:
                return read_usage(self.client("s3"), bucket, instances, now=now)
            except ValueError as error:
                raise UnavailableError(str(error)) from error


class AwsNodes(AwsFleets):
    """Implements trainium_core.nodes.report.Nodes. Later reads fetch only what changed in S3."""

    _store: NodeStore | None = None

    def nodes(self, stack: str) -> DeployedNodes | None:
        deployed = self.deployed_stack(stack)
        if deployed is None:
            return None
        resources = self.fleet_resources(stack, deployed)
        group_name, bucket = resources.group, resources.records_bucket
        if group_name is None or bucket is None:
            raise NodesNotCreatedError(stack, deployed.status)
        group = self._group(group_name)
        if self._store is None:
            self._store = NodeStore(self.client("s3"), bucket, RECORDS_PREFIX)
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {bucket}"):
            records, membership = self._store.records(), self._store.membership().membership
        return DeployedNodes(
            wanted=group.desired,
            instances=self._instances(group_name, group),
            records=records,
            membership=membership,
            suspended=group.suspended,
        )

    def _group(self, name: str) -> Group:
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            try:
                return describe_group(self.client("autoscaling"), name)
            except NoGroupError as error:
                raise UnavailableError(
                    f"{error}, although the stack has one: it was deleted outside CloudFormation"
                ) from error

    def _instances(self, group_name: str, group: Group) -> tuple[NodeInstance, ...]:
        if not group.instances:
            return ()
        with read_errors("ec2:DescribeInstances"):
            found = describe_instances(self.client("ec2"), group_name)
            return tuple(_instance(i, found.get(i, {}), leaving=i in group.leaving) for i in sorted(group.instances))


def _instance(instance_id: str, described: Mapping[str, Any], *, leaving: bool) -> NodeInstance:
    placement = described.get("Placement", {})
    return NodeInstance(
        instance_id=instance_id,
        zone=placement.get("AvailabilityZoneId") or placement.get("AvailabilityZone", ""),
        address=described.get("PrivateIpAddress", ""),
        state=described.get("State", {}).get("Name", "unknown to EC2"),
        launched=described.get("LaunchTime"),
        leaving=leaving,
    )
