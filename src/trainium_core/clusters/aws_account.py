"""Reads the clusters of an account: stacks from their records and from CloudFormation, nodes from EC2."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from trainium_core.aws.capacity import AwsCapacity, Reservation
from trainium_core.aws.identity import AwsIdentities
from trainium_core.aws.prices import AwsPrices
from trainium_core.capacity.block_start import block_start
from trainium_core.clusters.absence import ScalingGroup
from trainium_core.clusters.cluster import ClusterNode, ClusterStack, ClusterStacks
from trainium_core.engines.registry import ENGINES_WITH_NODES
from trainium_core.naming import ASLEEP_PARAMETER
from trainium_core.nodes.aws_control import EXISTING_STATES
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.plan.pilot_end import read_pilot_end
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT
from trainium_core.setting_schema.forms import UnreadableError
from trainium_core.stacks.aws_stacks import as_deployed_stack
from trainium_core.stacks.deployed_stack import DeployedStack
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import NoAccessError, UnavailableError
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG, STOPPED_TAG
from trainium_runtime.tags import tag_values
from trainium_wire.formats import one_line
from trainium_wire.stack_record import StackRecord

_STACK_TAG = "aws:cloudformation:stack-name"
_PRODUCTS = {"spot": SPOT, CAPACITY_BLOCK: CAPACITY_BLOCK}


class AwsClustersAccount(AwsIdentities, AwsPrices, AwsFleets):
    """Implements trainium_core.clusters.cluster.ClustersAccount.

    Args:
        by_tag: Whether also to find stacks without a record, by the tag of the stacks and of their resources.
    """

    def __init__(self, region: str, *, clients: Clients | None = None, by_tag: bool = True) -> None:
        super().__init__(region, clients=clients)
        self._by_tag = by_tag

    def cluster_stacks(self) -> ClusterStacks:
        with ThreadPoolExecutor() as threads:
            searching = threads.submit(self.tag_index) if self._by_tag else None
            records = self.records()
            existing = self.describe_stacks()
            not_read = [f"the record of a stack: {reason}" for reason in records.unreadable.values()]
            tag_index = None
            try:
                tag_index = searching.result() if searching else None
            except NoAccessError:
                raise
            except UnavailableError as error:
                not_read.append(f"stacks without a record, by their resources: {error}")
        # The cluster of each stack that created tagged resources.
        found = (tag_index or {}).values()
        tagged = {tags[_STACK_TAG]: tags[CLUSTER_TAG] for tags in found if _STACK_TAG in tags}
        stacks = list[ClusterStack]()
        capacity = AwsCapacity(self.region, clients=self._clients)
        for described in existing:
            name, stack = described["StackName"], as_deployed_stack(described)
            own = [record for record in records.readable if record.stack == name]
            by_tag = stack.tags.get(CLUSTER_TAG, tagged.get(name)) if self._by_tag else None
            cluster = own[0].cluster if own else by_tag
            if cluster is None:
                continue
            ends = None
            try:
                ends = _end(own, stack, capacity)
            except (UnreadableError, UnavailableError) as error:
                not_read.append(f"the end of {cluster} in the stack {name}: {error}")
            stacks.append(_cluster_stack(name, cluster, stack, own, ends))
        return ClusterStacks(stacks=stacks, not_read=not_read, described=existing, tag_index=tag_index)

    def cluster_nodes(self) -> Sequence[ClusterNode]:
        filters = [
            {"Name": "tag-key", "Values": [CLUSTER_TAG]},
            {"Name": "instance-state-name", "Values": list(EXISTING_STATES)},
        ]
        with read_errors("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
            return [_node(each) for each in pages.search("Reservations[].Instances[]")]
        return []

    def enabled_regions(self) -> Sequence[str]:
        with read_errors("ec2:DescribeRegions"):
            return [region["RegionName"] for region in self.client("ec2").describe_regions()["Regions"]]
        return []


def _with_nodes(records: Sequence[StackRecord]) -> StackRecord | None:
    return next((record for record in records if record.engine in ENGINES_WITH_NODES), None)


def _end(records: Sequence[StackRecord], stack: DeployedStack, capacity: AwsCapacity) -> datetime | None:
    """The end of the pilot in the records of a stack, if any.

    Raises:
        UnreadableError: The record has no valid end.
        UnavailableError: The Capacity Block from whose start the end counts could not be read.
    """
    record = _with_nodes(records)
    settings: Mapping[str, Any] = record.settings if record else {}
    end = settings.get("ends")
    if not end:
        return None
    reservation, kind = settings.get("reservation_id"), settings.get("capacity")
    begins = block_start(str(end), capacity, capacity=kind, reservation_id=reservation)
    return read_pilot_end(str(end)).instant(stack.created, begins)


def _cluster_stack(
    name: str, cluster: str, stack: DeployedStack, records: Sequence[StackRecord], ends: datetime | None
) -> ClusterStack:
    asleep, with_nodes = stack.parameters.get(ASLEEP_PARAMETER), _with_nodes(records)
    return ClusterStack(
        name=name,
        cluster=cluster,
        status=stack.status,
        engine=next((record.engine for record in (*filter(None, [with_nodes]), *records)), None),
        asleep=None if asleep is None else asleep == "true",
        ends=ends,
        has_nodes=with_nodes is not None,
        has_record=bool(records),
        project=stack.tags.get(PROJECT_TAG),
    )


def _node(instance: Mapping[str, Any]) -> ClusterNode:
    tags = tag_values(instance.get("Tags"))
    return ClusterNode(
        instance_id=instance["InstanceId"],
        cluster=tags[CLUSTER_TAG],
        instance_type=instance["InstanceType"],
        state=instance["State"]["Name"],
        product=_PRODUCTS.get(instance.get("InstanceLifecycle", ""), ON_DEMAND),
        zone_id=instance.get("Placement", {}).get("AvailabilityZoneId", ""),
        stack=tags.get(_STACK_TAG),
        described=instance,
    )


_LONGEST_REASON = 300


class AwsAbsences(AwsClustersAccount):
    """Implements trainium_core.clusters.absence.AbsenceAccount."""

    def fleet(self, stack: ClusterStack) -> StackRecord | None:
        found = (record for record in self.records().readable if record.stack == stack.name)
        of_cluster = (record for record in found if record.cluster == stack.cluster)
        return next((record for record in of_cluster if record.engine in ENGINES_WITH_NODES), None)

    def stop_reason(self, topic_arn: str) -> str | None:
        with read_errors("sns:ListTagsForResource", absent=("ResourceNotFound", "NotFound")):
            tags = tag_values(self.client("sns").list_tags_for_resource(ResourceArn=topic_arn)["Tags"])
            return tags.get(STOPPED_TAG)
        return None

    def group(self, name: str) -> ScalingGroup | None:
        client = self.client("autoscaling")
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            groups = client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
            if not groups:
                return None
            desired: int = groups[0]["DesiredCapacity"]
        if not desired:
            return ScalingGroup(desired=0)
        with read_errors("autoscaling:DescribeScalingActivities"):
            last: list[Any] = client.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=1)["Activities"]
            failed = last and last[0]["StatusCode"] in ("Failed", "Cancelled")
            error = one_line(last[0].get("StatusMessage", ""), _LONGEST_REASON) if failed else ""
            return ScalingGroup(desired=desired, error=error)
        return None

    def reservation(self, reservation_id: str) -> Reservation | None:
        return AwsCapacity(self.region, clients=self._clients).reservation(reservation_id)
