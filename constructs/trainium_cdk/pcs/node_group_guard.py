"""The guard of a compute node group: a function that stops the launches of failing nodes."""

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pcs as pcs
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.fleet.node_records import NodeRecords, allow_reading_records
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.pilot.pilot import add_alarm
from trainium_core.engines.pcs import slurm_settings

_READING = (
    "ec2:DescribeCapacityBlockStatus",
    "ec2:DescribeCapacityBlocks",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)
_LAUNCHING = (
    "ec2:CreateFleet",
    "ec2:CreateLaunchTemplate",
    "ec2:CreateLaunchTemplateVersion",
    "ec2:CreateTags",
    "ec2:RunInstances",
)
"""Actions that UpdateComputeNodeGroup requires of its caller.

AWS's pages differ, so these are all of the AWS PCS User Guide (minimum permissions; for a group in a Capacity Block,
"Configure a compute node group to use a Capacity Block") and of the Service Authorization Reference.
"""


class NodeGroupGuard(Construct):
    """A function that bounds the launches of failing nodes in a compute node group.

    AWS PCS launches a node again and again while a job waits and the node's lifecycle action fails. Beyond the limit of
    failures in 24 hours, the function sets the group's maximum to the highest number in the name of a node that passed
    its tests at boot, lowers its minimum to that number if necessary, and publishes a notice with the command that
    restores both. Until then, jobs that need more nodes stay pending.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: pcs.CfnCluster,
        group: pcs.CfnComputeNodeGroup,
        cluster_name: str,
        role: iam.IRole,
        records: NodeRecords,
        topic: sns.Topic,
        failures: int,
        nodes: int,
        min_nodes: int,
    ) -> None:
        """
        Args:
            group: The compute node group of the cluster.
            cluster_name: Name of the cluster in the notice.
            role: Role of the group's nodes.
            records: The bucket of the node records.
            topic: Topic of the notice.
            failures: Maximum number of nodes that may fail within 24 hours.
            nodes: Maximum of the group that the command in the notice restores.
            min_nodes: Minimum of the group that the command in the notice restores.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(
            self,
            "Guard",
            handler="node_group_guard",
            timeout_minutes=1,
            environment={
                "CLUSTER": cluster_name,
                "CLUSTER_ID": cluster.attr_id,
                "GROUP_ID": group.attr_id,
                "GROUP_NAME": slurm_settings.NODE_GROUP,
                "FAILURES": str(failures),
                "NODES": str(nodes),
                "MIN_NODES": str(min_nodes),
                "RECORDS_BUCKET": records.bucket.bucket_name,
                "RECORDS_PREFIX": records.prefix,
                "TOPIC": topic.topic_arn,
            },
        )
        allow_reading_records(function, records)
        function.allow(actions=["sns:Publish"], resources=[topic.topic_arn])
        function.allow(
            actions=["pcs:GetComputeNodeGroup", "pcs:UpdateComputeNodeGroup"],
            resources=[cluster.attr_arn, group.attr_arn],
        )
        function.allow_reading(_READING)
        self._allow_what_pcs_checks(function, role)
        function.call_on_object("Records", records.bucket, records.prefix)
        function.call_on_event(
            "Departures",
            source="aws.ec2",
            detail_types=["EC2 Instance State-change Notification"],
            detail={"state": ["terminated"]},
        )
        what = "The guard of the Slurm nodes is failing: failing nodes might be launched again and again."
        add_alarm(self, "Fails", function_name=function.name, what=what, topic_arn=topic.topic_arn)

    def _allow_what_pcs_checks(self, function: HandlerFunction, role: iam.IRole) -> None:
        """Permissions that AWS PCS checks when a group is updated; the function itself launches nothing."""
        stack = Stack.of(self)
        own = stack.format_arn(service="ec2", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME)
        image = f"arn:{Aws.PARTITION}:ec2:{stack.region}::image/*"
        function.allow(actions=_LAUNCHING, resources=[own, image])
        for resource in (own, image):
            justify_wildcard(function, resource, "AWS PCS checks the launch of a node that does not exist yet")
        to_ec2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
        function.allow(actions=["iam:PassRole"], resources=[role.role_arn], conditions=to_ec2)
        profiles = stack.format_arn(service="iam", region="", resource="instance-profile", resource_name="*")
        function.allow(actions=["iam:GetInstanceProfile"], resources=[profiles])
        justify_wildcard(function, profiles, "read-only; AWS PCS reads the instance profile of the group")
