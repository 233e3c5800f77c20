"""A fleet made of a plan and the CDK objects around it."""

from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import jsii
from aws_cdk import Annotations, CfnAutoScalingRollingUpdate, CfnUpdatePolicy, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from trainium_cdk.compile_cache import allow_cache
from trainium_cdk.fleet_gate import FleetGate
from trainium_cdk.fleet_interface import FAILED_NODES, METRICS_NAMESPACE, FleetBase
from trainium_cdk.fleet_names import claim_cluster_name
from trainium_cdk.fleet_outputs import add_fleet_outputs
from trainium_cdk.fleet_parts import FleetParts
from trainium_cdk.job_access import allow_jobs
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.launch_template import PlannedLaunchTemplate
from trainium_cdk.launch_template_version import LaunchTemplateVersion
from trainium_cdk.node_environment import encoded_environment
from trainium_cdk.node_keeper import NodeKeeper
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.node_volumes import allow_auto_scaling
from trainium_cdk.pilot import Pilot
from trainium_cdk.plan_network import plan_security_group
from trainium_cdk.plan_scope import check_region, tag_all
from trainium_cdk.precompile_host import PrecompileHost
from trainium_cdk.props_error import refuse
from trainium_cdk.quota_gate import PlannedQuotaGate
from trainium_cdk.service_role import service_role
from trainium_cdk.target_group import check_target_group
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_runtime.naming import CLUSTER_TAG
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import node_script, node_user_data

_LARGEST_BATCH = 100  # AutoScalingRollingUpdate.MaxBatchSize

# The least that Session Manager needs (Systems Manager documentation, minimum permissions for a session).
_SESSION_ACTIONS = [
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
]


@jsii.implements(elbv2.IApplicationLoadBalancerTarget, elbv2.INetworkLoadBalancerTarget)
class PlannedFleet(FleetBase):
    """The fleet of a plan. NeuronFleet says what its attributes are."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, parts: FleetParts) -> None:
        super().__init__(scope, construct_id)
        check_region(self, plan)
        self._make(plan, parts)

    @property
    def cluster_name(self) -> str:
        """Value of the tag trn:cluster on everything of the fleet, which `trn` finds it by."""
        return self._plan.cluster_name

    @property
    def auto_scaling_group_name(self) -> str:
        """Name of the nodes' Auto Scaling group."""
        return self.group.ref

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The nodes' role: `bucket.grant_read(fleet)` grants to it."""
        return self.role

    @property
    def connections(self) -> ec2.Connections:
        """The nodes' EFA security group: `fleet.connections.allow_from(other, ec2.Port.tcp(8080))` opens a port."""
        return self._connections

    def metric(self, metric_name: str, **options: Any) -> cloudwatch.Metric:
        """A metric of the Auto Scaling group, such as `GroupInServiceInstances`, which the group then collects.

        metric_name: as Amazon EC2 Auto Scaling calls it. options: those of cloudwatch.Metric, such as `period`.
        Default: the average of five minutes.
        """
        everything = autoscaling.CfnAutoScalingGroup.MetricsCollectionProperty(granularity="1Minute")
        self.group.metrics_collection = [everything]
        return super().metric(metric_name, **options)

    def metric_failed_nodes(self, **options: Any) -> cloudwatch.Metric:
        """How many nodes said that they failed, of the keeper's log, which a metric filter then counts.

        options: those of cloudwatch.Metric, such as `period`. Default: the sum of five minutes. A node that is seen to
        fail twice may count twice; where nothing failed there is no data.
        """
        if self.node.try_find_child("FailedNodes") is None:
            logs.MetricFilter(
                self,
                "FailedNodes",
                log_group=self.keeper.log_group,
                filter_pattern=logs.FilterPattern.string_value("$.record.state", "=", "failed"),
                metric_namespace=f"{METRICS_NAMESPACE}/{self.cluster_name}",
                metric_name=FAILED_NODES,
            )
        return super().metric_failed_nodes(**options)

    def attach_to_application_target_group(
        self, target_group: elbv2.IApplicationTargetGroup
    ) -> elbv2.LoadBalancerTargetProps:
        """Register the nodes with a target group of an Application Load Balancer; `add_targets` calls this.

        target_group: what sends the nodes requests; their group lets its load balancer in.

        Raises PropsError for one of another target type than instance, or of another VPC or region.
        """
        props = self._attach(target_group, of="application")
        target_group.register_connectable(self)
        return props

    def attach_to_network_target_group(self, target_group: elbv2.INetworkTargetGroup) -> elbv2.LoadBalancerTargetProps:
        """Register the nodes with a target group of a Network Load Balancer; `add_targets` calls this.

        target_group: what sends the nodes connections; open their port for its clients yourself.

        Raises PropsError for one of another target type than instance, or of another VPC or region.
        """
        return self._attach(target_group, of="network")

    def add_outputs(self) -> None:
        """Add outputs to the stack, below the fleet: commands to copy, such as a shell on the first node.

        Raises PropsError when called again.
        """
        add_fleet_outputs(
            self,
            self._plan,
            group_name=self.group.ref,
            cache_url=self.cache.url,
            records_bucket=self.records.bucket.bucket_name,
            launched=self.version.summary,
            proven=self.gate.summary,
            notices=self.pilot.topic.topic_arn if self.pilot else None,
        )

    def _attach(
        self, target_group: elbv2.ITargetGroup, *, of: Literal["application", "network"]
    ) -> elbv2.LoadBalancerTargetProps:
        check_target_group(self, target_group, self._vpc, of=of)
        attached = self.group.target_group_arns or ()
        self.group.target_group_arns = [*dict.fromkeys([*attached, target_group.target_group_arn])]
        return elbv2.LoadBalancerTargetProps(target_type=elbv2.TargetType.INSTANCE)

    def _make(self, plan: Plan, parts: FleetParts) -> None:
        claim_cluster_name(self, plan.cluster_name)
        tag_all(self, plan)
        stack = Stack.of(self)
        vpc, cache, sleep = parts.vpc, parts.cache, parts.sleep
        self._plan, self._vpc, self.cache = plan, vpc, cache
        self.security_group = plan_security_group(
            self,
            "SecurityGroup",
            plan,
            vpc=vpc,
            egress=parts.egress,
            downloads=plan.node.neuron_software == "install" or plan.setup_script is not None,
        )
        self._connections = ec2.Connections(security_groups=[self.security_group])
        self.records = records = NodeRecords(self, "Records")
        self.role = self._role(plan, parts)
        script_text = node_script(node_settings(plan))
        script = self._node_script(script_text)
        locations = NodeLocations(
            region=stack.region,
            cache_url=cache.url,
            report_url=records.url,
            node_script_url=script.s3_object_url,
        )
        for file_system in parts.file_systems:
            file_system.allow(self.security_group)
            locations = file_system.added_to(locations)
        profile = iam.InstanceProfile(self, "InstanceProfile", role=self.role)
        groups = [self.security_group, *parts.security_groups]
        placement_group = self._placement_group_name(plan, parts)
        if parts.volume_key is not None:
            allow_auto_scaling(self, parts.volume_key)
        made = PlannedLaunchTemplate(
            self,
            "LaunchTemplate",
            plan=plan,
            security_groups=groups,
            instance_profile=profile,
            user_data=self._user_data(plan, locations, parts, script_text),
            placement_group_name=placement_group,
            image_id=parts.image_id,
            volume_key=parts.volume_key,
            block_devices=parts.block_devices,
        )
        self.launch_template = made.template
        self.version = LaunchTemplateVersion(
            self,
            "LaunchTemplateVersion",
            plan=plan,
            template=made.template,
            image_id=made.image_id,
            image_name=parts.image_name,
            node_script_arn=script.bucket.arn_for_objects(script.s3_object_key),
            uses={
                **{name: value for name, value in asdict(locations).items() if value and name != "node_script_url"},
                **{f"security_group_{number}": group.security_group_id for number, group in enumerate(groups)},
                "instance_profile": profile.instance_profile_arn,
                **({"placement_group": placement_group} if placement_group else {}),
                **({"volume_key": parts.volume_key.key_arn} if parts.volume_key else {}),
                **({"block_devices": made.block_devices_text} if parts.block_devices else {}),
                **{f"environment_{name}": value for name, value in parts.environment.items()},
            },
            gives_image=plan.cache.precompile_instance_type is not None,
        )
        self._let_nodes_fetch(self.version.node_script)
        self.group = self._auto_scaling_group(plan, parts.subnet)
        # What a node needs at boot, and what must still be there while it goes.
        self.group.node.add_dependency(self.role, self.security_group, cache, records, *parts.file_systems)
        if isinstance(vpc, ec2.Vpc):
            self.group.node.add_dependency(*(sleep.always_there(vpc) if sleep else [vpc]))
        else:
            # An S3 endpoint may have been added to it.
            self.group.node.add_dependency(vpc)
        if plan.quota_gate:
            self.group.node.add_dependency(PlannedQuotaGate(self, "QuotaGate", plan=plan))
        self.keeper = NodeKeeper(
            self,
            "Keeper",
            group_name=self.group.ref,
            cluster_name=plan.cluster_name,
            records=records,
            replacements=plan.node.replacements if plan.node.recovery else 0,
            capacity_block_id=plan.reservation_id if plan.capacity == "capacity-block" else None,
        )
        host = None
        if plan.cache.precompile_instance_type is not None:
            host = PrecompileHost(
                self,
                "PrecompileHost",
                plan=plan,
                instance_type=plan.cache.precompile_instance_type,
                subnet=parts.subnet,
                security_groups=groups,
                role=self.role,
                instance_profile=profile,
                image_id=self.version.image,
                locations=replace(locations, lustre_dns=None, lustre_mount_name=None, efs_dns=None),
                environment=encoded_environment(self, parts.environment),
                records=records,
                volume_key=parts.volume_key,
            )
            host.group.node.add_dependency(*self.group.node.dependencies)
        self.pilot = None
        if plan.ends_by_itself or plan.pilot.budget_usd is not None:
            self.pilot = Pilot(
                self,
                "Pilot",
                plan=plan,
                group_name=self.group.ref,
                sleep=sleep,
                keeper=self.keeper,
                records=records,
                precompile_group_name=host.group.ref if host else None,
            )
        self.gate = FleetGate(
            self,
            "Gate",
            group_name=self.group.ref,
            cluster_name=plan.cluster_name,
            nodes=sleep.count(plan.nodes) if sleep else str(plan.nodes),
            launch_template_version=self.version.version,
            records=records,
            keeper=self.keeper,
            timeout_minutes=plan.node.timeout_minutes,
            clock=self.pilot.clock if self.pilot else None,
        )

    def _role(self, plan: Plan, parts: FleetParts) -> iam.IRole:
        role = parts.role or service_role(self, "Role", "ec2.amazonaws.com")
        sessions = iam.PolicyStatement(actions=_SESSION_ACTIONS, resources=["*"])
        if not role.add_to_principal_policy(sessions).statement_added:
            Annotations.of(self).add_warning_v2(
                "trn:role",
                "the policies of the given role are not changed here: it must be allowed what nodes do, which the role "
                "of a fleet without `role` shows (docs/reference/constructs.md)",
            )
        without_resources = "Session Manager's actions know no resources (Service Authorization Reference)"
        justify_wildcard(role, "*", without_resources)
        justify(role, checkov={"CKV_AWS_111": without_resources})
        allow_cache(parts.cache, role)
        key = parts.cache.bucket.encryption_key
        if key is not None:
            key.grant_encrypt_decrypt(role)
        allow_jobs(self, role, plan.jobs)
        precompiles = plan.cache.precompile_instance_type is not None
        self.records.grant_node(
            role, internode_ssh=plan.node.internode_ssh, internode_tests=plan.uses_efa, precompiles=precompiles
        )
        return role

    def _node_script(self, text: str) -> Asset:
        """Where in S3 the nodes find what sets them up and verifies them: their user data have no room for it."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "node-script.sh"
            file.write_bytes(text.encode())
            return Asset(self, "NodeScript", path=str(file))

    def _user_data(self, plan: Plan, locations: NodeLocations, parts: FleetParts, script: str) -> str:
        text = node_user_data(
            node_settings(plan), locations, encoded_environment(self, parts.environment), script=script
        )
        limit = facts()["user_data"]["limit_bytes"]
        if len(text.encode()) > limit:
            names = ", ".join(parts.environment)
            allowed = f"variables that fit the nodes' user data of {limit} bytes, of which most are taken"
            raise refuse(self, "environment", names, allowed=allowed, fix="put what is long into S3, and give its URL")
        return text

    def _let_nodes_fetch(self, node_script_arn: str) -> None:
        statement = iam.PolicyStatement(actions=["s3:GetObject"], resources=[node_script_arn])
        self.role.add_to_principal_policy(statement)

    def _placement_group_name(self, plan: Plan, parts: FleetParts) -> str | None:
        if parts.placement_group_name is not None:
            return parts.placement_group_name
        if plan.creates_placement_group:
            group = ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster")
            # Its tags cannot change: one of the app would replace the group, and with it the nodes.
            group.add_property_override("Tags", [{"Key": CLUSTER_TAG, "Value": plan.cluster_name}])
            return group.attr_group_name
        return plan.network.placement_group

    def _auto_scaling_group(self, plan: Plan, subnet: ec2.ISubnet) -> autoscaling.CfnAutoScalingGroup:
        group = autoscaling.CfnAutoScalingGroup(
            self,
            "Group",
            # Bounds alone: the gate says how many nodes there are, and the clock of the pilot when there are none.
            # CloudFormation begins with the minimum, and leaves the desired capacity alone later.
            min_size="0",
            max_size=str(plan.nodes),
            health_check_grace_period=60 * facts()["auto_scaling"]["minutes_of_grace"],
            vpc_zone_identifier=[subnet.subnet_id],
            # A scale-out that fails is rolled back: what must go then is what it brought, and no node that is proven.
            termination_policies=["NewestInstance"],
            launch_template=autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty(
                launch_template_id=self.launch_template.ref, version=self.version.version
            ),
        )
        justify(
            group, cdk_nag={"AS3": "gate and keeper watch every launch and replacement; a pilot has nobody on call"}
        )
        # Another version of the launch template replaces the nodes. None are kept in service meanwhile: half a cluster
        # trains nothing, and a reservation has no room for a second set.
        group.cfn_options.update_policy = CfnUpdatePolicy(
            auto_scaling_rolling_update=CfnAutoScalingRollingUpdate(
                min_instances_in_service=0,
                max_batch_size=min(plan.nodes, _LARGEST_BATCH),
                suspend_processes=[
                    "HealthCheck",
                    "ReplaceUnhealthy",
                    "AZRebalance",
                    "AlarmNotification",
                    "ScheduledActions",
                ],
            ),
        )
        return group
