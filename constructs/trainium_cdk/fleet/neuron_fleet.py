"""The nodes of a cluster."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from aws_cdk import Annotations, Duration, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.cdk_types import Key, Role
from trainium_cdk.checks import check, check_known, check_same_account, form, refuse, whole_duration
from trainium_cdk.fleet.capacity import Capacity, checked_capacity
from trainium_cdk.fleet.cluster_names import checked_cluster_name
from trainium_cdk.fleet.fleet_builder import Fleet
from trainium_cdk.fleet.fleet_interface import FleetBase, ImportedFleet, INeuronFleet
from trainium_cdk.fleet.fleet_props import FleetProps
from trainium_cdk.fleet.node_image import image_name, known_placement_group_name, node_image_id
from trainium_cdk.fleet.node_type import check_secondary_interfaces, checked_type, node_count_problems
from trainium_cdk.fleet.node_volumes import checked_root_volume
from trainium_cdk.fleet.setup_script import SetupScript
from trainium_cdk.network.known_subnet import check_addresses, check_mount_targets
from trainium_cdk.network.node_subnet import NeuronSubnet
from trainium_cdk.network.security_group import HTTP, HTTPS, check_groups
from trainium_cdk.network.subnet_routes import ReachesInternet
from trainium_cdk.pilot.pilot_props import checked_pilot
from trainium_cdk.pilot.sleep_switch import SleepSwitch, check_sleep, stack_sleep_switch
from trainium_cdk.storage.compile_cache import CompileCache, ICompileCache, check_cache
from trainium_cdk.storage.encryption_key import check_granting_key, check_key
from trainium_cdk.storage.node_file_system import NodeFileSystem, check_file_systems
from trainium_core.catalog.catalog import Catalog
from trainium_core.catalog.neuron_software import default_image, parameter_framework
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.replacing_settings import replacing_values
from trainium_core.plan.rules.forms import range_problems
from trainium_core.plan.rules.instance_type import core_config
from trainium_core.plan.rules.nodes import (
    block_placement,
    script_for_bash,
    software_for_devices,
)
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_core.plan.settings.node import NeuronSoftware, Node, Verification
from trainium_core.plan.settings.pilot import BudgetAction, EndsAction
from trainium_core.plan.values import PlanValues
from trainium_core.plan.warnings import (
    LATE_BUDGET,
    LUSTRE_CLIENT,
    UNANNOUNCED_END,
    capacity_warnings,
    image_warnings,
    root_volume_warnings,
)


class NeuronFleet(Fleet):
    """An Auto Scaling group of Trainium nodes in one subnet, connected by EFA if the instance type has it.

    The deployment completes after every node has passed its verification and has reached all others. A fleet can be a
    target of load balancers and a grantee:

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
        fleet.add_to_role_policy(iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"]))
        fleet.grant_run_jobs(pipeline)
        fleet.grant_operate(operator)
        fleet.add_security_group(monitored)
        fleet.connections.allow_from(app, ec2.Port.tcp(8080))
        listener.add_targets("Nodes", port=8080, targets=[fleet])
        fleet.metric("GroupInServiceInstances", period=Duration.minutes(1))
        fleet.metric_failed_nodes().create_alarm(stack, "Bad", threshold=1, evaluation_periods=1)
        fleet.metric_controller_errors().create_alarm(stack, "Errors", threshold=3, evaluation_periods=1)
        fleet.on_node_failed("Page", targets.SnsTopic(topic))
        fleet.add_outputs()

        other = NeuronFleet.from_neuron_fleet_attributes(
            stack, "Other", cluster_name="other", auto_scaling_group_name="other", role=role, security_group=app
        )
        other.connections.allow_from(fleet, ec2.Port.tcp(8080))

    `group`, `launch_template`, `role` and `security_group` are the CDK objects; `cache`, `version`, `records`,
    `controller`, `readiness` and `pilot` (for an end, a budget or a Capacity Block, else None) are constructs of this
    package. Changes to `launch_template` after the first deployment apply when all nodes are replaced, for example by
    a new `node_generation`.
    """

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
        neuron_software: NeuronSoftware = "image",
        root_device_name: str | None = None,
        root_volume_size: Size | None = None,
        root_volume_throughput: int | None = None,
        root_volume_initialization_rate: int | None = None,
        block_devices: Sequence[ec2.BlockDevice] = (),
        volume_key: Key | None = None,
        encryption_key: Key | None = None,
        setup: SetupScript | None = None,
        environment: Mapping[str, str] | None = None,
        logical_neuroncore_config: int | None = None,
        internode_ssh: bool = False,
        timeout: Duration | None = None,
        replacements: int | None = None,
        verification: Verification = "enforce",
        suppress_checks: Sequence[str] = (),
        node_generation: int | None = None,
        quota_check: bool = True,
        max_lifetime: Duration | None = None,
        end_time: datetime | None = None,
        ends_action: EndsAction | None = None,
        warn_before: Duration | None = None,
        notify_email: str | None = None,
        budget_usd: int | None = None,
        budget_action: BudgetAction | None = None,
        sleep: SleepSwitch | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        Args:
            instance_type: Type of every node. It must be offered in the region of the stack.
            vpc: VPC of the nodes.
            nodes: Number of instances. Default: 1.
            cluster_name: Value of the tag trn:cluster on every resource, by which `trn` finds the fleet: 1 to 32
                lower-case letters, digits and single hyphens, a letter first and no hyphen last. Default: derived from
                the construct's path.
            capacity: The purchase option. Default: Capacity.on_demand().
            vpc_subnets: The subnet of the nodes, which must reach S3. If several are selected, the deployment chooses
                one in a zone that offers the type, because EFA does not cross zones. Default: the private subnets with
                egress; without any, the isolated subnets; without these, the public subnets.
            security_groups: Security groups in addition to the fleet's own EfaSecurityGroup. Default: none.
            dns_servers: IPv4 addresses of resolvers that nodes may reach, in addition to the Amazon DNS server.
                Default: none.
            placement_group: An existing cluster placement group. Default: a new one for On-Demand and Spot Instances
                with EFA.
            secondary_interface_type: Interface type of all network cards but the first. efa-only needs no IP address.
                Default: efa.
            role: Role of the nodes. EC2 must be allowed to assume it. The permissions that nodes need are added if the
                CDK can change the role's policies. Default: a new one.
            cache: The compile cache. Default: a new CompileCache that is deleted with the fleet.
            file_systems: File systems that the nodes mount, at most one of each kind. Default: none.
            machine_image: Machine image of the nodes. Default: the newest Neuron DLAMI at the first deployment, and
                again when a change replaces all nodes.
            neuron_software: `install` installs driver, runtime and tools on a bare image, `image` expects them on the
                image. Default: image.
            root_device_name: Root device of the image. Default: /dev/sda1.
            root_volume_size: Size of the gp3 root volume. Default: 512 GiB.
            root_volume_throughput: Throughput of the root volume, in MiB/s. Default: 500.
            root_volume_initialization_rate: Rate in MiB/s at which EBS loads the image into a new root volume, billed
                per GiB. Default: without a guaranteed rate.
            block_devices: Additional volumes, encrypted unless `encrypted` is False. Default: none.
            volume_key: KMS key of the volumes. The policy of an imported key must allow Auto Scaling to use it.
                Default: the account's default key for EBS.
            encryption_key: KMS key of the cluster's bucket and of the pilot's topics. People who run jobs need
                permission to use it too. Default: keys that S3 manages (SSE-S3), and none for the topics.
            setup: Script that every node runs after its devices have been verified. Default: none.
            environment: Environment variables of the setup script, login shells and jobs. Values may be CDK tokens, and
                every user of a node can read them. A change replaces the nodes. Default: none.
            logical_neuroncore_config: Physical NeuronCores per logical NeuronCore. Default: that of the instance type.
            internode_ssh: Whether nodes may log on to each other over SSH. Default: False.
            timeout: How long the deployment waits for all nodes, in whole minutes, up to 55. Default: 50 minutes.
            replacements: Maximum number of failed nodes that are replaced in any 24 hours. Default: 2.
            verification: With `observe`, of the checks only missing devices or cores and wrong results fail a node.
                Default: enforce.
            suppress_checks: Names of checks that never fail a node. Default: none.
            node_generation: A different number replaces all nodes at the next deployment. Default: 1.
            quota_check: Whether the deployment checks the EC2 quota before it launches instances. Default: True.
            max_lifetime: Whole hours from the first deployment to the pilot's end, up to 366 days. Default: no end.
            end_time: When the pilot ends, with a time zone. Default: no end.
            ends_action: At the end, `sleep` terminates the nodes, `destroy` deletes the stack. Default: sleep.
            warn_before: Whole hours from the warning to the end, up to 336. If the pilot is shorter than twice this
                time, the warning is sent halfway. Default: 24 hours.
            notify_email: Address for the pilot's notices and alarms; its owner must confirm the subscription. Default:
                none.
            budget_usd: Budget of the cluster for a calendar year, in US dollars. Default: no budget.
            budget_action: `stop` terminates the nodes once the budget is spent; `notify` only warns. Default: notify.
            sleep: The switch that `trn sleep` and `trn wake` set. Default: the switch of the stack, created
                if needed; none in a nested stack.
            catalog: Instance types, including your own. Default: the built-in catalogue.

        Raises:
            PropsError: A parameter is invalid.
        """
        FleetBase.__init__(self, scope, construct_id)
        kind = checked_type(self, instance_type, catalog)
        purchase_option = checked_capacity(self, capacity, kind, catalog)
        name = checked_cluster_name(self, cluster_name)
        minutes = Node.timeout_minutes if timeout is None else whole_duration(self, "timeout", timeout, "minutes")
        max_replacements = Node.replacements if replacements is None else replacements
        group = known_placement_group_name(self, placement_group)
        script = None if setup is None else setup.text
        check_known(self, "node_generation", node_generation, why="it is converted to text at synthesis")
        check_known(self, "replacements", replacements, why="it is converted to text at synthesis")
        check(
            self,
            node_count_problems(self, nodes, kind, purchase_option, catalog),
            block_placement(group, purchase_option.kind, field="placement_group"),
            core_config(logical_neuroncore_config, kind, field="logical_neuroncore_config"),
            form("dns_servers", tuple(dns_servers)),
            form("suppress_checks", tuple(suppress_checks)),
            range_problems("node_timeout_minutes", minutes, "minutes", field="timeout"),
            form("node_replacements", max_replacements, field="replacements"),
            form("node_generation", node_generation),
            form("neuron_software", neuron_software),
            form("verification", verification),
            script_for_bash(script, field="setup"),
            software_for_devices(neuron_software, kind, field="neuron_software"),
        )
        if neuron_software == "install" and machine_image is None:
            fix = "pass the machine image of a bare Ubuntu 24.04 or Amazon Linux 2023"
            raise refuse(self, "machine_image", None, allowed="a bare image to install on", fix=fix)
        volume = checked_root_volume(
            self,
            size=root_volume_size,
            throughput=root_volume_throughput,
            initialization_rate=root_volume_initialization_rate,
            device_name=root_device_name,
        )
        pilot = checked_pilot(
            self,
            cluster_name=name,
            max_lifetime=max_lifetime,
            end_time=end_time,
            ends_action=ends_action,
            warn_before=warn_before,
            notify_email=notify_email,
            budget_usd=budget_usd,
            budget_action=budget_action,
            capacity_block_id=purchase_option.reservation_id if purchase_option.kind == "capacity-block" else None,
        )
        node = NodeSettings(
            cluster_name=name,
            type=kind,
            logical_neuroncore_config=logical_neuroncore_config,
            secondary_interface_type=secondary_interface_type or "efa",
            framework=parameter_framework(default_image(kind)) if machine_image is None else None,
            neuron_software=neuron_software,
            mounts=tuple(file_system.kind for file_system in file_systems),
            setup_script=script,
            suppress_checks=tuple(suppress_checks),
            verification=verification,
            internode_ssh=internode_ssh,
        )
        check_secondary_interfaces(self, secondary_interface_type, node)
        check_file_systems(self, file_systems, vpc)
        check_cache(self, cache)
        check_sleep(self, sleep)
        check_key(self, "volume_key", volume_key)
        check_granting_key(self, "encryption_key", encryption_key)
        place = NeuronSubnet(
            self, "Subnet", vpc=vpc, vpc_subnets=vpc_subnets, instance_type=instance_type, catalog=catalog
        )
        subnet = place.subnet
        if neuron_software == "install":
            self.node.add_validation(ReachesInternet(vpc, place.candidates))
        check_addresses(self, node, nodes, subnet)
        check_mount_targets(self, file_systems, subnet)
        check_groups(self, security_groups, vpc=vpc)
        image_id = node_image_id(self, machine_image, kind)
        self._make(
            FleetProps(
                node=node,
                nodes=nodes,
                capacity=purchase_option,
                image_id=image_id,
                image_name="" if machine_image is None else image_name(self, image_id),
                root_volume=volume,
                replacing=replacing_values(
                    {
                        "instance_type": kind.name,
                        "capacity": purchase_option.kind,
                        "reservation_id": purchase_option.reservation_id,
                        "root_volume_gib": volume.gib,
                        "root_volume_throughput": volume.throughput,
                        "root_volume_initialization": volume.initialization_rate,
                        "root_device_name": volume.device_name,
                        "logical_neuroncore_config": logical_neuroncore_config,
                        "secondary_interface_type": secondary_interface_type,
                        "neuron_software": neuron_software,
                        "internode_ssh": internode_ssh,
                        "node_generation": node_generation,
                        "setup_script": script,
                    }
                ),
                vpc=vpc,
                subnet=subnet,
                # Ubuntu's packages are downloaded over HTTP.
                outbound_tcp_ports=(HTTP, HTTPS) if neuron_software == "install" or script else (HTTPS,),
                dns_servers=dns_servers,
                cache=CompileCache(self, "CompileCache") if cache is None else cache,
                timeout_minutes=minutes,
                replacements=max_replacements,
                quota_check=quota_check,
                pilot=pilot,
                file_systems=file_systems,
                sleep=sleep or stack_sleep_switch(self),
                security_groups=security_groups,
                role=_checked_role(self, role),
                volume_key=volume_key,
                encryption_key=encryption_key,
                block_devices=block_devices,
                environment=environment or {},
                placement_group_name=group,
                catalog=catalog,
            )
        )
        for parameter, text in self._warnings(machine_image is None):
            Annotations.of(self).add_warning_v2(f"trn:{parameter}", text)

    def _warnings(self, has_default_image: bool) -> Iterator[tuple[str, str]]:
        props, region = self._props, Stack.of(self).region
        node, pilot = props.node, props.pilot
        if has_default_image:
            texts = image_warnings(default_image(node.type), region, node.framework, node.type)
            yield from (("machine_image", text) for text in texts)
        yield from (("capacity", text) for text in capacity_warnings(props.capacity.kind))
        if not node.type.is_gpu:
            yield from (("root_volume_size", text) for text in root_volume_warnings(props.root_volume.gib))
        if "lustre" in node.mounts:
            yield "file_systems", LUSTRE_CLIENT
        if pilot.end is not None and pilot.notify_email is None:
            yield "notify_email", UNANNOUNCED_END
        if pilot.budget_usd is not None:
            yield "budget_usd", LATE_BUDGET

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
        """Import a fleet, to grant it permissions, open its ports and get its events.

        Args:
            cluster_name: Name of the cluster.
            auto_scaling_group_name: Name of the nodes' Auto Scaling group.
            role: Role of the nodes.
            security_group: EFA security group of the nodes.

        Raises:
            PropsError: The name of the cluster is invalid.
        """
        return ImportedFleet(
            scope,
            construct_id,
            cluster_name=cluster_name,
            auto_scaling_group_name=auto_scaling_group_name,
            role=cast(iam.IRole, role),
            security_group=security_group,
        )


def _checked_role(fleet: Construct, role: Role | None) -> iam.IRole | None:
    if role is None:
        return None
    trusted = json.dumps(Stack.of(fleet).resolve(role.assume_role_policy)) if isinstance(role, iam.Role) else '"ec2.'
    if '"ec2.' not in trusted:
        allowed = "a role that EC2 may assume"
        fix = "create it with assumed_by=iam.ServicePrincipal('ec2.amazonaws.com')"
        raise refuse(fleet, "role", role.node.path, allowed=allowed, fix=fix)
    check_same_account(fleet, "role", role, what="a role")
    if isinstance(role, iam.Role) and Stack.of(role) is not Stack.of(fleet):
        # Otherwise the two stacks would depend on each other, because the role's policies name the fleet's buckets.
        allowed = f"a role of {Stack.of(fleet).node.path}, the stack, or one that is imported there"
        fix = "pass iam.Role.from_role_arn(stack, 'NodeRole', role.role_arn), in the stack of the fleet"
        raise refuse(fleet, "role", role.node.path, allowed=allowed, fix=fix)
    return cast(iam.IRole, role)
