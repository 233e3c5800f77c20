"""The host of `trn precompile`: launched on request and terminated afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aws_cdk import Fn, Lazy, Stack, TagManager, TagType
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.fleet.group_arn import allow_resizing
from trainium_cdk.fleet.launch_template import METADATA_OPTIONS, Data, TagSpecifications, own_tags
from trainium_cdk.fleet.node_records import NodeRecords
from trainium_cdk.fleet.node_script import NodeScript, allow_fetching
from trainium_cdk.fleet.node_volumes import RootVolume
from trainium_cdk.handler_function import HandlerFunction, call_on_event
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.storage.disposable_bucket import arn_of
from trainium_core.facts import facts
from trainium_core.naming import precompile_group_name
from trainium_core.plan.node_settings import NodeSettings
from trainium_runtime.handlers.precompile_end import ENDED, NOT_LAUNCHED
from trainium_runtime.naming import CLUSTER_TAG
from trainium_userdata.locations import NodeLocations
from trainium_wire.job_keys import job_keys
from trainium_wire.keys import PRECOMPILE_JOB_KEY, PRECOMPILE_PREFIX

_ENDS = job_keys("*").end


class PrecompileHost(Construct):
    """An Auto Scaling group of at most one instance without Neuron devices, with the image and the role of the nodes.

    `trn precompile` sets its size to 1, and schedules the size 0 for the time limit. A function sets the size 0 when
    the host reports that its job has ended or could not start, and marks the job as failed if the host was not launched
    or was terminated. After a day the host shuts itself down, which terminates it. `group` is the CDK object.
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
            node: The type to compile for.
            locations, environment: Those of the nodes.
            tags: Tags of launched resources.
            records: Their bucket holds the host's job and its reports.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        script = NodeScript(self, "HostScript", node=node, precompiles=True)
        allow_fetching(role, script.arn)
        report_url = f"s3://{records.bucket.bucket_name}/{PRECOMPILE_PREFIX}"
        own = replace(locations, report_url=report_url, node_script_url=script.s3_object_url)
        cluster_name = node.cluster_name
        own_and_given = {**tags, CLUSTER_TAG: cluster_name, "Name": f"{cluster_name}-precompile"}
        template = ec2.CfnLaunchTemplate(
            self,
            "LaunchTemplate",
            launch_template_data=Data(
                instance_type=instance_type,
                image_id=image_id,
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(
                    arn=instance_profile.instance_profile_arn
                ),
                # A stopped instance's volume would still be billed.
                instance_initiated_shutdown_behavior="terminate",
                network_interfaces=[
                    ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
                        device_index=0,
                        groups=[group.security_group_id for group in security_groups],
                        delete_on_termination=True,
                        associate_public_ip_address=False,
                    )
                ],
                block_device_mappings=[root_volume.mapping(volume_key)],
                metadata_options=METADATA_OPTIONS,
                tag_specifications=Lazy.any(
                    TagSpecifications(own_and_given, TagManager(TagType.KEY_VALUE, "AWS::EC2::LaunchTemplate"))
                ),
                user_data=Fn.base64(script.user_data(own, environment)),
            ),
            tag_specifications=own_tags(own_and_given),
        )
        self.group = autoscaling.CfnAutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=precompile_group_name(stack.stack_name, cluster_name),
            min_size="0",
            max_size="1",
            # As long as the longest job: a health check must not replace the host.
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
        function.allow(actions=["autoscaling:DescribeAutoScalingGroups"], resources=["*"])
        justify(
            function,
            cdk_nag={
                "IAM5[Resource::*]": "this read-only action has no resource-level permissions (Service Authorization "
                "Reference)"
            },
        )
        allow_resizing(function, group_name=self.group.ref, cluster_name=cluster_name)
        reports, ends = arn_of(bucket, f"{PRECOMPILE_PREFIX}/*"), arn_of(bucket, _ENDS)
        function.allow(actions=["s3:GetObject"], resources=[reports, arn_of(bucket, PRECOMPILE_JOB_KEY)])
        function.allow(actions=["s3:PutObject"], resources=[ends])
        records.allow_key(function, writing=True)
        function.allow(actions=["s3:ListBucket"], resources=[arn_of(bucket)])
        for objects in (reports, ends):
            justify_wildcard(function, objects, "one object for each host or job; ids are not known at synthesis")
        call_on_event(
            self,
            "Reports",
            function.arn,
            target_id="End",
            source="aws.s3",
            detail_types=["Object Created"],
            detail={"bucket": {"name": [bucket.bucket_name]}, "object": {"key": [{"prefix": f"{PRECOMPILE_PREFIX}/"}]}},
        )
        call_on_event(
            self,
            "Departures",
            function.arn,
            target_id="End",
            source="aws.autoscaling",
            detail_types=[NOT_LAUNCHED, ENDED],
            detail={"AutoScalingGroupName": [self.group.ref]},
        )
