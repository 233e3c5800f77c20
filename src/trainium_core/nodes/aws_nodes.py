"""Reads the nodes of a deployed cluster: its stack, group, instances, records and membership."""

from collections.abc import Collection, Mapping
from datetime import datetime

from trainium_core.engines.registry import ENGINES
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.nodes.report import DeployedNodes, JobBounds, NodeInstance, NodesNotCreatedError, node_instance
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import UnavailableError
from trainium_runtime.node_store import Group, NodeStore, NoGroupError, describe_group, describe_instances
from trainium_runtime.usage import ClusterUsage
from trainium_runtime.usage_store import read_usage
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.membership import Membership
from trainium_wire.node_record import StoredRecord


class AwsUsage(AwsService):
    def usage(self, bucket: str, instances: Collection[str], *, now: datetime) -> ClusterUsage:
        """The usage of nodes, from the bucket of their records. Raises UnavailableError."""
        with read_errors(f"s3:GetObject on the bucket {bucket}"):
            try:
                return read_usage(self.client("s3"), bucket, instances, now=now)
            except ValueError as error:
                raise UnavailableError(str(error)) from error


class AwsNodes(AwsFleets):
    """Implements trainium_core.nodes.report.Nodes. After the first read, only changed records are read again."""

    def __init__(self, region: str, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self._stores: dict[str, NodeStore] = {}

    def nodes(self, stack: str) -> DeployedNodes | None:
        deployed = self.deployed_stack(stack)
        if deployed is None:
            return None
        resources = self.fleet_resources(stack, deployed)
        group_name, service, bucket = resources.group, resources.service, resources.records_bucket
        if bucket is None or (group_name or (service and service.service_group)) is None:
            raise NodesNotCreatedError(stack, deployed.status)
        if bucket not in self._stores:
            self._stores[bucket] = NodeStore(self.client("s3"), bucket, RECORDS_PREFIX)
        store = self._stores[bucket]
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {bucket}"):
            records, membership = store.records(), store.membership().membership
        if service is not None:
            return self._service_group(service, records)
        assert group_name is not None
        group = self._group(group_name)
        return DeployedNodes(
            wanted=group.desired,
            instances=self._instances(group_name, group),
            records=records,
            membership=membership,
            suspended=group.suspended,
        )

    def _service_group(self, fleet: DeployedFleet, records: Mapping[str, StoredRecord]) -> DeployedNodes:
        service = ENGINES[fleet.engine].service_nodes()
        assert service is not None
        assert fleet.service_group is not None
        group = service.group(self, fleet.service_group)
        return DeployedNodes(
            wanted=group.least,
            instances=group.instances,
            records=records,
            membership=Membership(),
            for_jobs=JobBounds(most=group.most, planned=fleet.nodes),
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
            leaving = group.leaving
            return tuple(node_instance(i, found.get(i, {}), leaving=i in leaving) for i in sorted(group.instances))
