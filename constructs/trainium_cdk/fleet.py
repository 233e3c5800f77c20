"""The nodes of a cluster, as an app asks for them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from aws_cdk import Annotations, Duration, Size, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.arguments import check_object, check_same_account, check_type
from trainium_cdk.capacity import Capacity
from trainium_cdk.cdk_types import Key, Role
from trainium_cdk.compile_cache import CompileCache, ICompileCache, check_cache
from trainium_cdk.encryption_key import check_key
from trainium_cdk.fleet_gate import FleetGate
from trainium_cdk.fleet_interface import FleetBase, ImportedFleet, INeuronFleet
from trainium_cdk.fleet_names import generated_cluster_name
from trainium_cdk.fleet_parts import FleetParts
from trainium_cdk.fleet_plan import (
    KNOWN_LATER,
    check_card_interfaces,
    end_setting,
    gibibytes,
    hours,
    minutes,
    names,
    node_settings,
    plan_of,
)
from trainium_cdk.known_subnet import check_addresses, check_mount_targets
from trainium_cdk.launch_template_version import LaunchTemplateVersion
from trainium_cdk.node_file_system import NodeFileSystem, check_file_systems
from trainium_cdk.node_image import node_image, placement_group_name_of
from trainium_cdk.node_keeper import NodeKeeper
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.node_subnet import NeuronSubnet
from trainium_cdk.pilot import Pilot
from trainium_cdk.planned_fleet import PlannedFleet
from trainium_cdk.props_error import in_python, parameter_of, refuse
from trainium_cdk.security_group import check_groups
from trainium_cdk.setup_script import SetupScript
from trainium_cdk.sleep_switch import SleepSwitch, check_sleep, stack_sleep_switch
from trainium_core.catalog.catalog import Catalog
from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_core.plan.settings.node import NeuronSoftware, Verification
from trainium_core.plan.settings.pilot import BudgetAction, EndsAction
from trainium_core.plan.values import PlanValues

_WARNED_OF = ("ami", "budget_usd", "capacity", "fsx_lustre", "notify_email", "root_volume_gib")
"""Settings whose warnings are about the nodes, and not about a network that is the plan's or about who ends a pilot."""


class NeuronFleet(PlannedFleet):
    """An Auto Scaling group of Trainium nodes in one subnet, connected by EFA where the type has it.

    The deployment ends when every node has proved that it is what the catalogue says, and has reached all others. It is
    a target of load balancers and a grantee of permissions:

    Example:

        fleet = NeuronFleet(
            stack,
            "Fleet",
            instance_type=ec2.InstanceType("trn1.32xlarge"),
            nodes=2,
            cluster_name="training",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2b"]),
        )
        data.grant_read(fleet)
        fleet.connections.allow_from(app, ec2.Port.tcp(8080))
        listener.add_targets("Nodes", port=8080, targets=[fleet])
        fleet.metric("GroupInServiceInstances", period=Duration.minutes(1))
        fleet.metric_failed_nodes().create_alarm(stack, "Bad", threshold=1, evaluation_periods=1)
        fleet.on_node_failed("Page", targets.SnsTopic(topic))
        fleet.add_outputs()

        other = NeuronFleet.from_neuron_fleet_attributes(
            stack, "Other", cluster_name="other", auto_scaling_group_name="other", role=role, security_group=app
        )
        other.connections.allow_from(fleet, ec2.Port.tcp(8080))

    `group`, `launch_template`, `role` and `security_group` are the CDK objects, `cache`, `version`, `records`,
    `keeper`, `gate` and `pilot` (None without an end or budget) the constructs that the fleet is of.
    """

    group: autoscaling.CfnAutoScalingGroup
    launch_template: ec2.CfnLaunchTemplate
    role: iam.IRole
    security_group: ec2.ISecurityGroup
    cache: ICompileCache
    records: NodeRecords
    version: LaunchTemplateVersion
    keeper: NodeKeeper
    gate: FleetGate
    pilot: Pilot | None

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instance_type: ec2.InstanceType,
        vpc: ec2.IVpc,
        nodes: int = PlanValues.nodes,
        cluster_name: str | None = None,
        capacity: Capacity | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        dns_servers: Sequence[str] = (),
        placement_group: ec2.IPlacementGroup | None = None,
        secondary_interface_type: CardInterfaceType | None = None,
        role: Role | None = None,
        cache: ICompileCache | None = None,
        file_systems: Sequence[NodeFileSystem] = (),
        machine_image: ec2.IMachineImage | None = None,
        neuron_software: NeuronSoftware | None = None,
        root_device_name: str | None = None,
        root_volume_size: Size | None = None,
        root_volume_throughput: int | None = None,
        root_volume_initialization_rate: int | None = None,
        block_devices: Sequence[ec2.BlockDevice] = (),
        volume_key: Key | None = None,
        setup: SetupScript | None = None,
        environment: Mapping[str, str] | None = None,
        logical_neuroncore_config: int | None = None,
        internode_ssh: bool | None = None,
        timeout: Duration | None = None,
        replacements: int | None = None,
        verification: Verification | None = None,
        suppress_checks: Sequence[str] = (),
        generation: int | None = None,
        quota_gate: bool | None = None,
        ends: Duration | datetime | None = None,
        ends_action: EndsAction | None = None,
        warning: Duration | None = None,
        notify_email: str | None = None,
        budget_usd: int | None = None,
        budget_action: BudgetAction | None = None,
        sleep: SleepSwitch | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        instance_type: type of every node, one that the region of the stack offers.
        vpc: where the nodes are.
        nodes: number of instances. Default: 1.
        cluster_name: 1 to 32 lower-case letters, digits and hyphens; the tag trn:cluster on everything, by which `trn`
            finds the fleet. Default: made of the construct's path.
        capacity: how the instances are bought. Default: Capacity.on_demand().
        vpc_subnets: the subnet of the nodes, which must reach S3; EFA does not cross zones. Default: the private
            subnets of the VPC. Of several, one in a zone that offers the type.
        security_groups: groups besides the fleet's own EfaSecurityGroup. Default: none.
        dns_servers: IPv4 addresses of resolvers other than Amazon's, that nodes may reach. Default: none.
        placement_group: a cluster placement group of your own. Default: a new one with EFA on demand or spot.
        secondary_interface_type: of network cards after the first; efa-only takes no IP address. Default: efa.
        role: of the nodes, which EC2 may assume; gets the permissions that nodes need. Default: a new one.
        cache: the compile cache. Default: a new CompileCache that goes with the fleet.
        file_systems: what the nodes mount, one of each kind at most. Default: nothing.
        machine_image: what the nodes boot. Default: the newest Neuron DLAMI at the first deployment.
        neuron_software: `install` puts driver, runtime and tools on a bare image. Default: image, which has them.
        root_device_name: of the image. Default: /dev/sda1.
        root_volume_size: of the gp3 root volume. Default: 512 GiB.
        root_volume_throughput: of the root volume, in MiB/s. Default: 500.
        root_volume_initialization_rate: MiB/s at which the image's blocks come to a new root volume, billed per GiB.
            Default: what EBS gives.
        block_devices: volumes besides the root volume, encrypted unless told otherwise. Default: none.
        volume_key: key that volumes are encrypted with; its policy lets Auto Scaling use it. Default: the account's own
            for EBS.
        setup: script that every node runs after its devices are verified. Default: none.
        environment: variables that the setup script, login shells and jobs have; a value may be a CDK token. Anybody on
            a node can read them. Another value replaces the nodes. Default: none.
        logical_neuroncore_config: physical NeuronCores per logical core. Default: the type's own.
        internode_ssh: whether nodes may log on to each other over SSH. Default: False.
        timeout: how long the deployment waits for every node, up to 55 minutes. Default: 50 minutes.
        replacements: failed nodes that are replaced within 24 hours, 0 for none. Default: 2.
        verification: `observe` lets only missing devices or cores and wrong numbers fail a node. Default: enforce.
        suppress_checks: names of checks that do not fail a node. Default: none.
        generation: another number replaces all nodes at the next deployment. Default: 1.
        quota_gate: whether the deployment asks for the EC2 quota before any instance. Default: True.
        ends: when the nodes go by themselves: after the first deployment, or at an instant. Default: never.
        ends_action: `sleep` for no nodes, `destroy` for the deletion of the whole stack. Default: sleep.
        warning: time before the end at which a warning is sent, in whole hours. Default: 24 hours.
        notify_email: where warnings of end and budget go; the address must confirm once. Default: the topic alone.
        budget_usd: US dollars that the cluster may cost in a calendar year. Default: no budget.
        budget_action: `stop` for no nodes once the budget is spent. Default: notify.
        sleep: what `trn sleep` and `trn wake` turn. Default: the one switch of the stack; none in a nested stack.
        catalog: instance types with your own. Default: the built-in catalogue.

        Raises PropsError with everything that is wrong, by the names of these parameters.
        """
        FleetBase.__init__(self, scope, construct_id)
        settings = node_settings(
            self,
            instance_type=instance_type,
            nodes=nodes,
            cluster_name=generated_cluster_name(self) if cluster_name is None else cluster_name,
            capacity=capacity,
            catalog=catalog,
        )
        image = node_image(self, machine_image)
        placement_group_name = placement_group_name_of(self, placement_group)
        check_object(self, "vpc", vpc, has="vpc_id", what="an ec2.IVpc")
        check_file_systems(self, file_systems, vpc)
        check_cache(self, cache)
        check_sleep(self, sleep)
        check_key(self, "volume_key", volume_key)
        if setup is not None:
            check_type(
                self, "setup", setup, SetupScript, what="a SetupScript, such as SetupScript.from_file('setup.sh')"
            )
        plan = plan_of(
            self,
            {
                **settings,
                "vpc_id": f"vpc-{KNOWN_LATER}",
                "subnet_id": f"subnet-{KNOWN_LATER}",
                "ami": image.id_in_plan,
                "root_device_name": root_device_name,
                "root_volume_gib": gibibytes(self, "root_volume_size", root_volume_size),
                "root_volume_throughput": root_volume_throughput,
                "root_volume_initialization": root_volume_initialization_rate,
                "logical_neuroncore_config": logical_neuroncore_config,
                "dns_servers": names(self, "dns_servers", dns_servers, what="a list of IPv4 addresses"),
                "secondary_interface_type": secondary_interface_type,
                "placement_group": None if placement_group is None else "known to CloudFormation",
                "node_timeout_minutes": minutes(self, "timeout", timeout),
                "neuron_software": neuron_software,
                "suppress_checks": names(self, "suppress_checks", suppress_checks, what="a list of names of checks"),
                "verification": verification,
                "node_replacements": replacements,
                "internode_ssh": internode_ssh,
                "node_generation": generation,
                "quota_gate": quota_gate,
                "setup_script": None if setup is None else setup.text,
                "ends": end_setting(self, ends),
                "ends_action": ends_action,
                "warning_hours": hours(self, "warning", warning),
                "notify_email": notify_email,
                "budget_usd": budget_usd,
                "budget_action": budget_action,
                **{key: value for one in file_systems for key, value in one.settings.items()},
            },
            {"capacity": capacity, "timeout": timeout, "root_volume_size": root_volume_size},
        )
        check_card_interfaces(self, secondary_interface_type, plan)
        if ends_action == "destroy":
            _check_that_the_stack_can_go(self)
        subnet = NeuronSubnet(
            self, "Subnet", vpc=vpc, vpc_subnets=vpc_subnets, instance_type=instance_type, catalog=catalog
        ).subnet
        check_addresses(self, plan, subnet)
        check_mount_targets(self, file_systems, subnet)
        check_groups(self, security_groups, vpc=vpc)
        self._make(
            plan,
            FleetParts(
                vpc=vpc,
                subnet=subnet,
                cache=CompileCache(self, "CompileCache") if cache is None else cache,
                egress="existing",
                file_systems=file_systems,
                sleep=sleep or stack_sleep_switch(self),
                security_groups=security_groups,
                role=_own_role(self, role),
                volume_key=volume_key,
                block_devices=block_devices,
                environment={} if environment is None else environment,
                placement_group_name=placement_group_name,
                image_id=image.image_id,
                image_name=image.name,
            ),
        )
        for setting, text in cluster_warnings(plan).items():
            if setting in _WARNED_OF:
                Annotations.of(self).add_warning_v2(f"trn:{parameter_of(setting)}", in_python(text))

    @staticmethod
    def from_neuron_fleet_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        auto_scaling_group_name: str,
        role: Role,
        security_group: ec2.ISecurityGroup,
    ) -> INeuronFleet:
        """A fleet of another app, to grant it permissions, open its ports and hear of its nodes.

        cluster_name: its cluster's name. auto_scaling_group_name: its nodes' group. role: its nodes' role.
        security_group: its nodes' group.

        Raises PropsError for what is none of these.
        """
        return ImportedFleet(
            scope,
            construct_id,
            cluster_name=cluster_name,
            auto_scaling_group_name=auto_scaling_group_name,
            role=cast(iam.IRole, role),
            security_group=security_group,
        )


def _own_role(fleet: Construct, role: Role | None) -> iam.IRole | None:
    if role is None:
        return None
    check_object(fleet, "role", role, has="role_arn", what="an iam.IRole")
    trusted = json.dumps(Stack.of(fleet).resolve(role.assume_role_policy)) if isinstance(role, iam.Role) else '"ec2.'
    if '"ec2.' not in trusted:
        allowed = "a role that EC2 may assume"
        fix = "make it with assumed_by=iam.ServicePrincipal('ec2.amazonaws.com')"
        raise refuse(fleet, "role", role.node.path, allowed=allowed, fix=fix)
    check_same_account(fleet, "role", role, what="a role")
    if isinstance(role, iam.Role) and Stack.of(role) is not Stack.of(fleet):
        # Its policies would name the fleet's buckets in a stack that the fleet's depends on.
        allowed = f"a role of {Stack.of(fleet).node.path}, the stack, or one that is imported there"
        fix = "give iam.Role.from_role_arn(stack, 'NodeRole', role.role_arn), in the stack of the fleet"
        raise refuse(fleet, "role", role.node.path, allowed=allowed, fix=fix)
    return cast(iam.IRole, role)


def _check_that_the_stack_can_go(fleet: Construct) -> None:
    stack = Stack.of(fleet)
    if stack.nested:
        got, fix = "destroy in a nested stack", "put the fleet into a stack of its own, or choose sleep"
    elif stack.termination_protection:
        got, fix = "destroy with termination_protection=True", "leave out that of the stack, or choose sleep"
    else:
        return
    allowed = "destroy in a stack that can be deleted by itself"
    raise refuse(fleet, "ends_action", got, allowed=allowed, fix=fix)
