"""Reads the nodes of a deployed cluster: its group, instances, records and membership."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from trainium_core.engines.registry import ENGINES
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.nodes.report import (
    DeployedNodes,
    JobBounds,
    NodeInstance,
    NodesNotCreatedError,
    NodesReport,
    node_instance,
)
from trainium_core.stacks.deployed_stack import STABLE_STATUSES
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import UnavailableError
from trainium_runtime.node_store import Group, NodeStore, NoGroupError, describe_group, describe_instances
from trainium_runtime.usage import ClusterUsage, LastJob, is_current
from trainium_runtime.usage_store import read_last_job, read_reports, read_usage
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.membership import Membership
from trainium_wire.metric_sample import RecentMetrics, recent_metrics
from trainium_wire.node_record import StoredRecord
from trainium_wire.stack_record import StackRecord

Descriptions = Mapping[str, Mapping[str, Any]]
_NOT_DESCRIBED: Descriptions = {}
_METRICS_SECONDS = 60.0


class AwsUsage(AwsService):
    """Reads the use of nodes from the bucket of their records. Methods raise UnavailableError."""

    def last_job(self, bucket: str) -> LastJob | None:
        """The current or last job; None without one."""
        with read_errors(f"s3:GetObject on the bucket {bucket}"):
            try:
                return read_last_job(self.client("s3"), bucket)
            except ValueError as error:
                raise UnavailableError(str(error)) from error

    def usage(self, bucket: str, instances: Collection[str], job: LastJob | None, *, now: datetime) -> ClusterUsage:
        """The usage of instances with their last job."""
        with read_errors(f"s3:GetObject on the bucket {bucket}"):
            return read_usage(self.client("s3"), bucket, instances, job, now=now)


class AwsNodes(AwsFleets):
    """After the first read, only changed records are read again. Methods raise UnavailableError."""

    def __init__(self, region: str, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self._stores: dict[str, NodeStore] = {}
        self._metrics: dict[str, tuple[float, Mapping[str, RecentMetrics]]] = {}

    def nodes(
        self, stack: str, *, described: Descriptions = _NOT_DESCRIBED, with_metrics: bool = False
    ) -> DeployedNodes | None:
        """The nodes of a stack; None if the stack does not exist.

        Args:
            stack: Name of the stack.
            described: EC2's descriptions of instances by ID, which were read already.
            with_metrics: Read the metrics of nodes in an Auto Scaling group too.
        """
        fleet = self.fleet_record(stack)
        if fleet is None:
            return None
        if fleet.group is not None:
            deployed = self._scaling_group(fleet, fleet.group, described)
            if not with_metrics:
                return deployed
            instances = [node.instance_id for node in deployed.instances]
            return replace(deployed, metrics=self._recent_metrics(fleet.bucket, instances))
        service = ENGINES[fleet.engine].service_nodes()
        assert service is not None, "an engine without it records the group"
        group = service.group(self, fleet.cluster)
        if group is None:
            raise self._missing(stack, f"the {service.called} of {fleet.cluster} does not exist")
        records, _ = self._stored(fleet)
        return DeployedNodes(
            wanted=group.least,
            instances=group.instances,
            records=records,
            membership=Membership(),
            for_jobs=JobBounds(most=group.most, planned=int(fleet.settings["nodes"])),
        )

    def outside_nodes(self, stack: str) -> NodesReport | None:
        """The nodes that run the jobs of a stack without being part of it; None if its engines have no such nodes."""
        found = (ENGINES[record.engine].outside_nodes(self, record) for record in self.stack_records(stack))
        return next((report for report in found if report is not None), None)

    def _scaling_group(self, fleet: StackRecord, name: str, described: Descriptions) -> DeployedNodes:
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            try:
                group = describe_group(self.client("autoscaling"), name)
            except NoGroupError as error:
                raise self._missing(fleet.stack, str(error)) from error
        records, membership = self._stored(fleet)
        return DeployedNodes(
            wanted=group.desired,
            instances=self._instances(name, group, described),
            records=records,
            membership=membership,
            suspended=group.suspended,
            templates=group.launched,
        )

    def _recent_metrics(self, bucket: str, instances: Collection[str]) -> Mapping[str, RecentMetrics]:
        """The metrics in current usage reports, read at most once a minute."""
        read_at, found = self._metrics.get(bucket, (-_METRICS_SECONDS, {}))
        if instances and time.monotonic() - read_at >= _METRICS_SECONDS:
            with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {bucket}"):
                reports = read_reports(self.client("s3"), bucket, instances)
            now = datetime.now(UTC)
            found = {
                instance: recent_metrics(report.samples)
                for instance, report in reports.items()
                if report.samples and is_current(report, now)
            }
            self._metrics[bucket] = time.monotonic(), found
        return found

    def newest_version(self, template_id: str) -> int | None:
        """The number of the newest version of a launch template; None if the template does not exist."""
        with read_errors("ec2:DescribeLaunchTemplates", absent=("InvalidLaunchTemplateId.NotFound",)):
            found = self.client("ec2").describe_launch_templates(LaunchTemplateIds=[template_id])["LaunchTemplates"]
            return found[0]["LatestVersionNumber"] if found else None
        return None

    def _stored(self, fleet: StackRecord) -> tuple[Mapping[str, StoredRecord], Membership]:
        bucket = fleet.bucket
        if bucket not in self._stores:
            self._stores[bucket] = NodeStore(self.client("s3"), bucket, RECORDS_PREFIX)
        store = self._stores[bucket]
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {bucket}"):
            return store.records(), store.membership().membership

    def _missing(self, stack: str, error: str) -> UnavailableError:
        """The error for a missing group. A stack creates it after its record, and deletes it before."""
        deployed = self.deployed_stack(stack)
        if deployed and deployed.status not in STABLE_STATUSES:
            return NodesNotCreatedError(stack, deployed.status)
        return UnavailableError(f"{error}, although the stack has one: it was deleted outside CloudFormation")

    def _instances(self, group_name: str, group: Group, described: Descriptions) -> tuple[NodeInstance, ...]:
        if not described.keys() >= {*group.instances}:
            with read_errors("ec2:DescribeInstances"):
                described = describe_instances(self.client("ec2"), group_name)
        leaving = group.leaving
        return tuple(node_instance(i, described.get(i, {}), leaving=i in leaving) for i in sorted(group.instances))
