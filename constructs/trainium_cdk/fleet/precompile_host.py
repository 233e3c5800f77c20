"""The host of `trn precompile`: launched on request and terminated afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aws_cdk import Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.fleet.group_arn import allow_resizing
from trainium_cdk.fleet.launch_template import simple_launch_template
from trainium_cdk.fleet.node_records import NodeRecords
from trainium_cdk.fleet.node_script import NodeScript
from trainium_cdk.fleet.node_volumes import RootVolume
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.service_role import allow
from trainium_cdk.storage.disposable_bucket import arn_of
from trainium_core.facts import facts
from trainium_core.naming import precompile_group_name
from trainium_core.plan.node_settings import NodeSettings
from trainium_runtime.handlers.precompile_end import ENDED, NOT_LAUNCHED
from trainium_runtime.naming import CLUSTER_TAG
from trainium_userdata.locations import NodeLocations
from trainium_wire.job_keys import job_keys
from trainium_wire.keys import PRECOMPILE_JOB_KEY, PRECOMPILE_PREFIX


class PrecompileHost(Construct):
    """An Auto Scaling group of at most one instance without Neuron devices, with the image and the role of the nodes.

    `trn precompile` sets its size to 1, and schedules the size 0 for the time limit. A function sets the size 0 when
    the host reports that its job has ended or could not start, and marks the job as failed if the host was not launched
    or was terminated. After a day at the latest, the host shuts itself down, which terminates it. `group` is the CDK
    object.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        node: NodeSettings,
        instance_type: str,
        root_volume: RootVolume,
        subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        role: iam.IRole,
        instance_profile: iam.IInstanceProfile,
        image_id: str,
        locations: NodeLocations,
        environment: Mapping[str, str],
        records: NodeRecords,
        volume_key: Key | None = None,
        tags: Mapping[str, str],
    ) -> None:
        """
        Args:
            node: The node settings, with the instance type to compile for.
            locations: The locations of the nodes, which the host uses too.
            environment: The environment variables of the nodes, which the host gets too.
            records: The bucket with the host's job and its reports.
            tags: Tags of launched resources.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        script = NodeScript(self, "HostScript", node=node, precompiles=True)
        allow(role, ["s3:GetObject"], [script.arn])
        report_url = f"s3://{records.bucket.bucket_name}/{PRECOMPILE_PREFIX}"
        own = replace(locations, report_url=report_url, node_script_url=script.s3_object_url)
        cluster_name = node.cluster_name
        template = simple_launch_template(
            self,
            "LaunchTemplate",
            image_id=image_id,
            security_groups=security_groups,
            root_volume=root_volume.mapping(volume_key),
            user_data=script.user_data(own, environment),
            tags={**tags, CLUSTER_TAG: cluster_name, "Name": f"{cluster_name}-precompile"},
            instance_type=instance_type,
            iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(
                arn=instance_profile.instance_profile_arn
            ),
            # A stopped instance's volume would still be billed.
            instance_initiated_shutdown_behavior="terminate",
        )
        self.group = autoscaling.CfnAutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=precompile_group_name(stack.stack_name, cluster_name),
            min_size="0",
            max_size="1",
            # The longest life of the host: a health check must not replace it.
            health_check_grace_period=60 * facts()["precompile"]["most_minutes"],
            vpc_zone_identifier=[subnet.subnet_id],
            launch_template=autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty(
                launch_template_id=template.ref, version=template.attr_latest_version_number
            ),
        )
        justify(self.group, cdk_nag={"AS3": "`trn precompile` follows its host; the host reports its end"})
        self._end_on_report(cluster_name, records)

    def _end_on_report(self, cluster_name: str, records: NodeRecords) -> None:
        bucket = records.bucket
        function = HandlerFunction(
            self,
            "End",
            handler="precompile_end",
            timeout_minutes=1,
            environment={
                "GROUP": self.group.ref,
                "BUCKET": bucket.bucket_name,
                "JOB_KEY": PRECOMPILE_JOB_KEY,
            },
        )
        function.allow_reading(["autoscaling:DescribeAutoScalingGroups"])
        allow_resizing(function, group_name=self.group.ref, cluster_name=cluster_name)
        reports, ends = arn_of(bucket, f"{PRECOMPILE_PREFIX}/*"), arn_of(bucket, job_keys("*").end)
        function.allow(actions=["s3:GetObject"], resources=[reports, arn_of(bucket, PRECOMPILE_JOB_KEY)])
        function.allow(actions=["s3:PutObject"], resources=[ends])
        records.allow_key(function, writing=True)
        function.allow(actions=["s3:ListBucket"], resources=[arn_of(bucket)])
        for objects in (reports, ends):
            justify_wildcard(function, objects, "one object for each host or job; ids are not known at synthesis")
        function.call_on_object("Reports", bucket, PRECOMPILE_PREFIX)
        function.call_on_event(
            "Departures",
            source="aws.autoscaling",
            detail_types=[NOT_LAUNCHED, ENDED],
            detail={"AutoScalingGroupName": [self.group.ref]},
        )
