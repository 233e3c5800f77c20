"""Reads the clusters of an account: stacks from CloudFormation, nodes from EC2."""

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from trainium_core.capacity.aws_capacity import AwsCapacity
from trainium_core.capacity.offerings import Reservation
from trainium_core.clusters.absence import ScalingGroup
from trainium_core.clusters.cluster import ClusterNode, ClusterStack, ClusterStacks
from trainium_core.engines.registry import CLUSTER, ENGINES_WITH_NODES
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.naming import ASLEEP_PARAMETER, CONSTRUCT_IDS, ENDS_OUTPUT, RECORDS_OUTPUT
from trainium_core.nodes.aws_fleets import AwsFleets, deployed_fleets
from trainium_core.nodes.aws_groups import EXISTING_STATES
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT
from trainium_core.stacks.aws_stacks import as_deployed_stack
from trainium_core.stacks.cluster_resources import clusters_in
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.errors import NoAccessError, UnavailableError
from trainium_runtime.naming import CLUSTER_TAG, STOPPED_TAG
from trainium_runtime.pilot_end import Deadline
from trainium_runtime.tags import tag_values
from trainium_wire.formats import one_line

_THREADS = 4
_STACK_TAG = "aws:cloudformation:stack-name"
_PRODUCTS = {"spot": SPOT, CAPACITY_BLOCK: CAPACITY_BLOCK}


class AwsClustersAccount(AwsIdentities, AwsPrices, AwsFleets):
    """Implements trainium_core.clusters.cluster.ClustersAccount."""

    def cluster_stacks(self) -> ClusterStacks:
        """Stacks with the tag, and stacks whose resources have the tag.

        The tag index names the stack of each tagged resource. The index lags behind, so the stacks of tagged Auto
        Scaling groups are also read, and stacks with the names that this repository's app gives them.
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            searches = [threads.submit(search) for search in (self._stacks_in_index, self._stacks_with_group)]
            existing = self.describe_stacks()
            with_tagged, not_read = set[str](), list[str]()
            for future in searches:
                try:
                    with_tagged |= future.result()
                except NoAccessError:
                    raise
                except UnavailableError as error:
                    not_read.append(f"stacks of other apps, by their resources: {error}")
            answers = list(threads.map(partial(self._stack, with_tagged), existing))
        return ClusterStacks(
            stacks=[stack for answer in answers if not isinstance(answer, str) for stack in answer],
            not_read=[*not_read, *(answer for answer in answers if isinstance(answer, str))],
        )

    def fleet(self, stack: ClusterStack) -> DeployedFleet | None:
        deployed = self.deployed_stack(stack.name)
        fleets = self.fleets(deployed) if deployed else ()
        return next((fleet for fleet in fleets if fleet.cluster == stack.cluster), None)

    def _stacks_in_index(self) -> set[str]:
        """Names of the stacks that created the tagged resources in the index."""
        return {tags[_STACK_TAG] for tags in self.tag_index().values() if _STACK_TAG in tags}

    def _stacks_with_group(self) -> set[str]:
        """Names of the stacks that have an Auto Scaling group with the tag."""
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            pages = self.client("autoscaling").get_paginator("describe_auto_scaling_groups")
            tagged = pages.paginate(Filters=[{"Name": "tag-key", "Values": [CLUSTER_TAG]}])
            groups = [group for page in tagged for group in page["AutoScalingGroups"]]
        named = ((group, tag_values(group.get("Tags"))) for group in groups)
        stacks = (tags.get(_STACK_TAG) or self.stack_containing(group["AutoScalingGroupName"]) for group, tags in named)
        return {stack for stack in stacks if stack}

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

    def _stack(self, with_tagged: Collection[str], described: Mapping[str, Any]) -> Sequence[ClusterStack] | str:
        """One ClusterStack per cluster in the stack; the reason as text if the stack cannot be read.

        Args:
            with_tagged: Names of the stacks that contain tagged resources.
            described: CloudFormation's description of the stack.
        """
        name, engine, stack = (
            described["StackName"],
            _stack_engine(described["StackName"]),
            as_deployed_stack(described),
        )
        cluster = stack.tags.get(CLUSTER_TAG)
        if cluster is None and engine is None and name not in with_tagged:
            return ()
        ends, with_nodes = dict[str, str | None](), {cluster} if engine in ENGINES_WITH_NODES else set[str | None]()
        clusters: Sequence[str] = (cluster,) if cluster else ()
        # A stack of another app may have the same name, but not the same outputs.
        may_be_of_another_app = engine == CLUSTER.key and RECORDS_OUTPUT not in stack.outputs
        if cluster is None or engine is None or may_be_of_another_app:
            try:
                resources = self.template_resources(stack.stack_id, stack.status)
            except UnavailableError as error:
                return f"the cluster of the stack {name}: {error}"
            fleets = deployed_fleets(resources, {})
            clusters = clusters or clusters_in(resources)
            with_nodes = {fleet.cluster for fleet in fleets}
            ends = {fleet.cluster: fleet.ends for fleet in fleets}
        return [self._cluster_stack(name, described, engine, ends.get(name), name in with_nodes) for name in clusters]

    def _cluster_stack(
        self, cluster: str, described: Mapping[str, Any], engine: str | None, ends: str | None, has_nodes: bool
    ) -> ClusterStack:
        stack = as_deployed_stack(described)
        asleep, ends = stack.parameters.get(ASLEEP_PARAMETER), stack.outputs.get(ENDS_OUTPUT) or ends
        return ClusterStack(
            name=described["StackName"],
            cluster=cluster,
            status=stack.status,
            engine=engine,
            asleep=None if asleep is None else asleep == "true",
            ends=Deadline.from_text(ends).instant(stack.created) if ends else None,
            has_nodes=has_nodes,
        )


def _stack_engine(stack: str) -> str | None:
    """The key of the engine of a stack with a name of this repository's app; None for other names."""
    for key, construct_id in CONSTRUCT_IDS.items():
        if re.fullmatch(rf"([a-z0-9-]+-)?{re.escape(construct_id)}", stack):
            return key
    return None


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
    )


_LONGEST_REASON = 300


class AwsAbsences(AwsClustersAccount):
    """Implements trainium_core.clusters.absence.AbsenceAccount."""

    def stop_reason(self, cluster: str) -> str | None:
        return next((tags[STOPPED_TAG] for tags in self.tag_index(cluster).values() if STOPPED_TAG in tags), None)

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
