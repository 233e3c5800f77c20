"""A fleet, created from validated values and CDK objects."""

from dataclasses import asdict
from typing import Any

from aws_cdk import Annotations, Stack, Token
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.fleet.capacity import warn_if_reservation_is_shared
from trainium_cdk.fleet.cluster_names import claim_cluster, tag_all
from trainium_cdk.fleet.controller import Controller
from trainium_cdk.fleet.created_fleet import CreatedFleet
from trainium_cdk.fleet.dashboard import FleetDashboard
from trainium_cdk.fleet.fleet_props import FleetProps
from trainium_cdk.fleet.fleet_readiness import FleetReadiness
from trainium_cdk.fleet.group_checks import GroupChecks
from trainium_cdk.fleet.job_access import allow_jobs, allow_sessions
from trainium_cdk.fleet.launch_template import LaunchTemplateProps, NodeLaunchTemplate, launch_market_type
from trainium_cdk.fleet.launch_template_version import LaunchTemplateVersion
from trainium_cdk.fleet.node_environment import encoded_environment
from trainium_cdk.fleet.node_image import check_neuron_software, image_name, new_placement_group, node_image_id
from trainium_cdk.fleet.node_records import NodeRecords, role_unique_id
from trainium_cdk.fleet.node_script import NodeScript
from trainium_cdk.fleet.node_volumes import allow_auto_scaling
from trainium_cdk.fleet.quota_check import QuotaCheck
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.network.security_group import EfaSecurityGroup
from trainium_cdk.physical_names import physical_name, recorded_bucket_name
from trainium_cdk.pilot.pilot import Pilot
from trainium_cdk.pilot.sleep_switch import recorded_sleep_function
from trainium_cdk.service_role import allow, service_role
from trainium_cdk.stack_record import StackRecordParameter, recorded_construct
from trainium_cdk.storage.compile_cache import allow_cache, allow_cache_key, cache_url
from trainium_core.engines.ec2.costs import node_price
from trainium_core.facts import facts
from trainium_core.plan.deployed_plan import recorded_type
from trainium_userdata.locations import NodeLocations
from trainium_wire.stack_record import StackRecord


class Fleet(CreatedFleet):
    """A fleet that a subclass creates from validated values. NeuronFleet documents its attributes."""

    record: StackRecordParameter

    def _make(self, props: FleetProps) -> None:
        self._props, self.cache = props, props.cache
        self._cluster_name = cluster_name = props.node.cluster_name
        claim_cluster(self, cluster_name, kind="fleet")
        warn_if_reservation_is_shared(self, props.capacity)
        tag_all(self, cluster_name, props.tags)
        self.record = StackRecordParameter(self, "Record", cluster_name=cluster_name, record=self._stack_record)
        self.node.add_dependency(self.record)
        own_group = EfaSecurityGroup(
            self,
            "SecurityGroup",
            vpc=props.vpc,
            outbound_tcp_ports=props.outbound_tcp_ports,
            dns_servers=props.dns_servers,
        )
        self.security_group = own_group
        self._connections = ec2.Connections(security_groups=[own_group])
        self._groups = [own_group, *props.security_groups]
        self.records = NodeRecords(self, "Records", encryption_key=props.encryption_key)
        self._role = role = self._node_role(props)
        self._profile = iam.InstanceProfile(self, "InstanceProfile", role=role)
        script = NodeScript(self, "NodeScript", node=props.node)
        self._launch_from(props, script, self._locations(props, script))
        self._group = self._auto_scaling_group(props)
        self._group_name = group_name = self._group.ref
        self.node.default_child = self._group
        checks: Any = GroupChecks(self._group, lambda: self._imported_group, cluster_name=cluster_name)
        self.node.add_validation(checks)
        self._depend_on_what_nodes_need(props)
        self.pilot = None
        if props.pilot.is_needed:
            self.pilot = Pilot(
                self, "Pilot", props=props.pilot, cluster_name=cluster_name, encryption_key=props.encryption_key
            )
        self.controller = Controller(
            self,
            "Controller",
            cluster_name=cluster_name,
            nodes=props.nodes,
            group_name=group_name,
            records=self.records,
            replacements=props.replacements,
            pilot=self.pilot,
            sleep=props.sleep,
            metrics=props.metrics,
        )
        self._controller_name = self.controller.name
        self._records_bucket = self.records.bucket
        self._sleep_function_name = props.sleep.function_name if props.sleep else None
        self._pilot_topic_arn = self.pilot.topic.topic_arn if self.pilot else None
        self.dashboard = None if props.metrics == "none" else self._dashboard(props)
        self.readiness = FleetReadiness(
            self,
            "FleetReadiness",
            controller=self.controller,
            nodes=props.sleep.count(props.nodes) if props.sleep else str(props.nodes),
            launch_template_id=self._launch_template.launch_template_id,
            launch_template_version=self.version.version,
            subnet_id=props.subnet.subnet_id,
            timeout_minutes=props.timeout_minutes,
        )

    def _dashboard(self, props: FleetProps) -> FleetDashboard:
        region = Stack.of(self).region
        fleet: Any = self  # jsii checks the interfaces of a class that Python declares at runtime
        return FleetDashboard(
            self,
            "Monitoring",
            fleet=fleet,
            by_node=props.metrics == "nodes",
            node_price=None if Token.is_unresolved(region) else node_price(props.plan_values(region)),
            topic=self.pilot.notices if self.pilot else None,
        )

    def _stack_record(self) -> StackRecord:
        props, stack = self._props, Stack.of(self)
        return StackRecord(
            cluster=self._cluster_name,
            stack=stack.stack_name,
            construct=recorded_construct(self),
            engine="cluster",
            bucket=recorded_bucket_name(self, self.records.bucket),
            cache_url=cache_url(recorded_bucket_name(self, props.cache.bucket)),
            settings=props.recorded_settings(self._image_id),
            instance_type=recorded_type(props.node.type, stack.region),
            group=self._group.auto_scaling_group_name,
            sleep_function=recorded_sleep_function(self),
            topic_arn=self.pilot.recorded_topic_arn if self.pilot else None,
        )

    def _node_role(self, props: FleetProps) -> iam.IRole:
        role = props.role or service_role(self, "Role", "ec2.amazonaws.com")
        if not allow_sessions(role):
            Annotations.of(self).add_warning_v2(
                "trn:role",
                "the CDK cannot change the policies of the given role: it must have the permissions of nodes; to see "
                "them, synthesise a fleet without `role`, and read the policies of its role "
                "(docs/reference/constructs.md)",
            )
        any_resource = "ssmmessages has no resource-level permissions; instance IDs are not known at synthesis"
        justify_wildcard(role, "*", any_resource)
        justify(role, checkov={"CKV_AWS_111": any_resource})
        allow_cache(props.cache, role)
        allow_cache_key(props.cache, role)
        allow_jobs(self, role, props.jobs)
        self.records.grant_node(role, internode_ssh=props.node.internode_ssh, internode_tests=props.node.uses_efa)
        return role

    def _locations(self, props: FleetProps, script: NodeScript) -> NodeLocations:
        locations = NodeLocations(
            region=Stack.of(self).region,
            cache_url=props.cache.url,
            report_url=self.records.url,
            cache_access="read" if props.cache.read_only else None,
            role_id=role_unique_id(self.role),
            node_script_url=script.s3_object_url,
        )
        for file_system in props.file_systems:
            file_system.allow(self.security_group)
            locations = file_system.added_to(locations)
        return locations

    def _launch_from(self, props: FleetProps, script: NodeScript, locations: NodeLocations) -> None:
        """Create the launch template, and the custom resource that chooses the version for the nodes."""
        placement_group = props.placement_group_name or new_placement_group(self, props.node, props.capacity)
        image_id = node_image_id(self, props.image, props.node.type)
        check_neuron_software(self, props.image, image_id)
        if props.volume_key is not None:
            allow_auto_scaling(self, props.volume_key)
        made = NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            props=LaunchTemplateProps(
                node=props.node,
                capacity=props.capacity,
                market_type=launch_market_type(props.capacity),
                image_id=image_id,
                root_volume=props.root_volume,
                security_groups=self._groups,
                instance_profile=self._profile,
                user_data=script.user_data(locations, encoded_environment(self, props.environment)),
                placement_group_name=placement_group,
                volume_key=props.volume_key,
                block_devices=props.block_devices,
                tags=props.tags,
                # A new generation must create a new version even if nothing else has changed.
                description=f"generation {props.replacing.get('node_generation', '1')}",
            ),
        )
        self._launch_template, self._image_id = made, image_id
        places = {name: value for name, value in asdict(locations).items() if value and name != "node_script_url"}
        self.version = LaunchTemplateVersion(
            self,
            "LaunchTemplateVersion",
            template=self.launch_template,
            image_id=image_id,
            image_name=image_name(self, props.image, image_id),
            node_script_arn=script.arn,
            # Running instances keep their tag trn:cluster, by which `trn` and permissions find nodes.
            settings={**props.replacing, "cluster_name": props.node.cluster_name},
            uses={
                **places,
                **{f"security_group_{number}": group.security_group_id for number, group in enumerate(self._groups)},
                "instance_profile": self._profile.instance_profile_arn,
                **({"placement_group": placement_group} if placement_group else {}),
                **({"volume_key": props.volume_key.key_arn} if props.volume_key else {}),
                **({"block_devices": made.block_devices_text} if props.block_devices else {}),
                **{f"environment_{name}": value for name, value in props.environment.items()},
            },
        )
        allow(self.role, ["s3:GetObject"], [self.version.node_script])

    def _auto_scaling_group(self, props: FleetProps) -> autoscaling.CfnAutoScalingGroup:
        group = autoscaling.CfnAutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=physical_name(self, "nodes"),
            # Only bounds, and no UpdatePolicy: the controller sets the size, and replaces nodes. CloudFormation creates
            # the group at its minimum size and keeps its desired capacity.
            min_size="0",
            max_size=str(props.nodes),
            health_check_grace_period=60 * facts()["auto_scaling"]["minutes_of_grace"],
            vpc_zone_identifier=[props.subnet.subnet_id],
            # If a scale-out is rolled back, the new nodes must be terminated, not the verified ones.
            termination_policies=["NewestInstance"],
            launch_template=autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty(
                launch_template_id=self._launch_template.launch_template_id, version=self.version.version
            ),
        )
        watched = "the controller looks at every launch and replacement; a pilot has no on-call"
        justify(group, cdk_nag={"AS3": watched})
        return group

    def _depend_on_what_nodes_need(self, props: FleetProps) -> None:
        """Let the group depend on the resources that a node needs at boot and until it is terminated."""
        group_node = self._group.node
        group_node.add_dependency(self.role, self.security_group, props.cache, self.records, *props.file_systems)
        if isinstance(props.vpc, ec2.Vpc) and props.sleep:
            group_node.add_dependency(*props.sleep.resources_when_asleep(props.vpc))
        else:
            # An S3 endpoint may have been added to an imported VPC.
            group_node.add_dependency(props.vpc)
        if props.quota_check:
            quota = QuotaCheck(
                self,
                "QuotaCheck",
                instance_type=ec2.InstanceType(props.node.type.name),
                nodes=props.nodes,
                capacity=props.capacity,
                cluster_name=props.node.cluster_name,
                catalog=props.catalog,
            )
            group_node.add_dependency(quota)


class PlannedFleet(Fleet):
    """The fleet of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, props: FleetProps) -> None:
        super().__init__(scope, construct_id)
        self._make(props)
