"""The node reconciler: maintains the nodes of a group, during a deployment and after it."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Stack
from constructs import Construct

from trainium_cdk.fleet.group_arn import allow_on_group
from trainium_cdk.fleet.node_records import NodeRecords, allow_reading_records
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_runtime.handlers.capacity_block_end import DETAIL_TYPES
from trainium_runtime.naming import CLUSTER_TAG, NODE_REASON_TAG, NODE_STATE_TAG


class NodeReconciler(Construct):
    """A function that reconciles the nodes with their records.

    It is invoked for every node record, for every terminated instance, before the end of a Capacity Block, by the fleet
    gate, and by the clock of the pilot. It logs each record, tags the instance with its state, replaces failed nodes
    within the limit, writes the membership of the cluster once every node is proven, and writes the notices of the end
    of a Capacity Block and of the pilot.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        group_name: str,
        cluster_name: str,
        records: NodeRecords,
        replacements: int,
        capacity_block_id: str | None = None,
    ) -> None:
        """
        Args:
            group_name: The nodes' Auto Scaling group.
            cluster_name: Value of the instances' tag trn:cluster.
            records: The bucket of the node records and the membership.
            replacements: Maximum number of failed nodes that are replaced in any 24 hours.
            capacity_block_id: The Capacity Block of whose end the nodes are notified. Default: none.
        """
        super().__init__(scope, construct_id)
        self.replacements = replacements
        function = HandlerFunction(
            self,
            "Keeper",
            handler="node_reconciler",
            timeout_minutes=2,
            environment={
                "GROUP": group_name,
                "REPLACEMENTS": str(replacements),
                "RECORDS_BUCKET": records.bucket.bucket_name,
                "RECORDS_PREFIX": records.prefix,
            },
        )
        self.arn, self.function_name = function.arn, function.name
        self.log_group = function.log_group
        allow_reading_records(function, records)
        function.allow(actions=["s3:PutObject"], resources=[records.membership_arn])
        records.allow_key(function, writing=True)
        function.allow_reading(["autoscaling:DescribeAutoScalingGroups", "ec2:DescribeInstances"])
        tags = {"ForAllValues:StringEquals": {"aws:TagKeys": [NODE_STATE_TAG, NODE_REASON_TAG]}}
        allow_on_nodes(function, actions=["ec2:CreateTags"], cluster_name=cluster_name, conditions=tags)
        if replacements:
            allow_on_group(function, "autoscaling:SetInstanceHealth", group_name=group_name)
        function.call_on_object("Records", records.bucket, records.prefix)
        function.call_on_event(
            "Departures",
            source="aws.autoscaling",
            detail_types=["EC2 Instance Terminate Successful"],
            detail={"AutoScalingGroupName": [group_name]},
        )
        if capacity_block_id is not None:
            function.call_on_event(
                "CapacityBlockEnd",
                source="aws.ec2",
                detail_types=DETAIL_TYPES,
                detail={"capacity-reservation-id": [capacity_block_id]},
            )


def allow_on_nodes(
    function: HandlerFunction,
    *,
    actions: Sequence[str],
    cluster_name: str,
    conditions: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Allow a function to perform actions on the instances of a cluster, and no others."""
    stack = Stack.of(function)
    instances = stack.format_arn(service="ec2", resource="instance", resource_name="*")
    of_cluster = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name}}
    function.allow(actions=actions, resources=[instances], conditions={**of_cluster, **(conditions or {})})
    justify_wildcard(function, instances, f"instances with the cluster's own tag {CLUSTER_TAG}, by condition")
