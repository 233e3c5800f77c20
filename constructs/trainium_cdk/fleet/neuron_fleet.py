"""The nodes of a cluster."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from aws_cdk import Annotations, Duration, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key, Role, Topic
from trainium_cdk.checks import check, check_known, check_same_account, form, refuse, whole_duration
from trainium_cdk.fleet.capacity import Capacity, checked_capacity
from trainium_cdk.fleet.cluster_names import checked_cluster_name
from trainium_cdk.fleet.fleet_builder import Fleet
from trainium_cdk.fleet.fleet_interface import INeuronFleet
from trainium_cdk.fleet.fleet_props import FleetProps
from trainium_cdk.fleet.imported_fleet import ImportedFleet
from trainium_cdk.fleet.node_checks import NodeChecks
from trainium_cdk.fleet.node_image import NodeImage, known_placement_group_name
from trainium_cdk.fleet.node_type import check_secondary_interfaces, checked_type, node_count_problems
from trainium_cdk.fleet.node_volumes import checked_root_volume
from trainium_cdk.fleet.setup_script import SetupScript
from trainium_cdk.network.known_subnet import check_addresses, check_file_system_zones
from trainium_cdk.network.node_subnet import NeuronSubnet
from trainium_cdk.network.security_group import HTTP, HTTPS, check_groups
from trainium_cdk.network.subnet_routes import ReachesInternet
from trainium_cdk.pilot.pilot_props import Budget, PilotEnd, checked_pilot
from trainium_cdk.pilot.sleep_switch import SleepSwitch, check_sleep, stack_sleep_switch
from trainium_cdk.storage.compile_cache import CompileCache, ICompileCache, check_cache
from trainium_cdk.storage.encryption_key import check_granting_key, check_key
from trainium_cdk.storage.node_file_system import NodeFileSystem, check_file_systems
from trainium_core.catalog.catalog import Catalog
from trainium_core.catalog.neuron_software import default_image, parameter_framework
from trainium_core.engines.ec2.warnings import fleet_warnings
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.rules.forms import range_problems
from trainium_core.plan.rules.instance_type import core_config
from trainium_core.plan.rules.nodes import (
    block_placement,
    script_for_bash,
    software_for_devices,
)
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_core.plan.settings.node import CloudWatchMetrics, Node, effective_metrics
from trainium_core.plan.values import PlanValues

_PARAMETERS = {
    "ami": "image",
    "budget_usd": "budget",
    "ends": "end",
    "fsx_lustre": "file_systems",
    "idle_minutes": "idle_limit",
    "root_volume_gib": "root_volume_size",
}
"""The parameters that are settings of another name in a plan."""


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
        fleet.metric_core_utilization(period=Duration.minutes(1))
        fleet.metric_job_core_utilization()
        fleet.metric_memory_utilization()
        fleet.metric_execution_errors()
        fleet.metric_uncorrected_memory_errors()
        fleet.metric_silent_nodes()
        fleet.metric_controller_errors().create_alarm(stack, "Errors", threshold=3, evaluation_periods=1)
        fleet.on_node_failed("Page", targets.SnsTopic(topic))
        fleet.add_outputs()

        other = NeuronFleet.from_neuron_fleet_attributes(
            stack, "Other", cluster_name="other", auto_scaling_group_name="other", role=role, security_group=app
        )
        other.connections.allow_from(fleet, ec2.Port.tcp(8080))

    `auto_scaling_group`, `launch_template`, `role` and `security_group` are L2 constructs of the CDK. The L1 resources
    are `node.default_child`, the Auto Scaling group, and `launch_template.node.default_child`, whose changes after the
    first deployment apply when all nodes are replaced, for example by a new `node_generation`. `cache`, `version`,
    `records`, `controller`, `readiness`, `dashboard` (None without metrics) and `pilot` (None without an end, budget,
    idle limit or Capacity Block) are constructs of this package.
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
        image: NodeImage | None = None,
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
        ready_timeout: Duration | None = None,
        max_replacements: int | None = None,
        checks: NodeChecks | None = None,
        node_generation: int | None = None,
        quota_check: bool = True,
        cloudwatch_metrics: CloudWatchMetrics | None = None,
        metrics_port: int | None = None,
        end: PilotEnd | None = None,
        budget: Budget | None = None,
        idle_limit: Duration | None = None,
        notices: Topic | None = None,
        notify_email: str | None = None,
        job_notices: bool = False,
        sleep: SleepSwitch | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        Args:
            instance_type: Type of every node. It must be offered in the region of the stack.
            vpc: VPC of the nodes.
            nodes: Number of instances. Default: 1.
            cluster_name: Value of the tag trn:cluster on every resource, by which `trn` finds the fleet: 1 to 32
                lower-case letters, digits and single hyphens, a letter first and no hyphen last. Another name replaces
                the nodes. Default: derived from the construct's path.
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
            image: Machine image of the nodes, with or without Neuron software. Default: NodeImage.dlami().
            root_volume_size: Size of the gp3 root volume. Default: 512 GiB.
            root_volume_throughput: Throughput of the root volume, in MiB/s. Default: 500.
            root_volume_initialization_rate: Rate in MiB/s at which EBS loads the image into a new root volume, billed
                per GiB. Default: without a guaranteed rate.
            block_devices: Additional volumes, encrypted unless `encrypted` is False. Default: none.
            volume_key: KMS key of the volumes. The policy of an imported key must allow Auto Scaling to use it.
                Default: the account's default key for EBS.
            encryption_key: KMS key of the cluster's bucket, of a new cache and of the pilot's topics. People who run
                jobs need permission to use it too. Default: keys that S3 manages (SSE-S3), and none for the topics.
            setup: Script that every node runs after its devices have been verified. Default: none.
            environment: Environment variables of the setup script, login shells and jobs. Values may be CDK tokens, and
                every user of a node can read them. A change replaces the nodes. Default: none.
            logical_neuroncore_config: Physical NeuronCores per logical NeuronCore. Default: that of the instance type.
            internode_ssh: Whether nodes may log on to each other over SSH. Default: False.
            ready_timeout: How long the deployment waits for all nodes, in whole minutes, up to 55. Default: 50 minutes.
            max_replacements: Maximum number of failed nodes that are replaced in any 24 hours. Default: 2.
            checks: Which failed checks fail a node. Default: NodeChecks.enforce().
            node_generation: A different number replaces all nodes at the next deployment. Default: 1.
            quota_check: Whether the deployment checks the EC2 quota before it launches instances. Default: True.
            cloudwatch_metrics: Metrics of utilization and errors, with a dashboard and alarms: of the cluster and of
                each node (nodes), only of the cluster, or none. Metrics are billed while nodes run. Default: nodes for
                up to 16 nodes, else cluster.
            metrics_port: TCP port, 1024 to 32767, on which nodes serve these metrics to Prometheus. Allow its servers
                with `fleet.connections.allow_from()`. Default: nodes do not serve them.
            end: When the pilot ends. Default: no end.
            budget: Budget of the cluster for a calendar year. Default: no budget.
            idle_limit: Whole minutes, from 30 to 10,080, after which the nodes are terminated if no job and no process
                uses them; `trn wake` launches new nodes. Default: unused nodes keep running.
            notices: Topic for notices and alarms. The policies of an imported topic and of its key must
                allow AWS Budgets and CloudWatch to publish. Default: a new one.
            notify_email: Address for notices and alarms instead of `notices`; its owner must confirm the subscription.
                Default: none.
            job_notices: Whether the topic of notices gets a message at the end of each job of `trn run`. Default:
                False.
            sleep: The switch that `trn sleep` and `trn wake` set. Default: the switch of the stack, created if
                needed.
            catalog: Instance types, including your own. Default: the built-in catalogue.

        Raises:
            PropsError: A parameter is invalid.
        """
        super().__init__(scope, construct_id)
        kind = checked_type(self, instance_type, catalog)
        capacity = checked_capacity(self, capacity, kind, catalog)
        name = checked_cluster_name(self, cluster_name)
        image, checks = image or NodeImage.dlami(), checks or NodeChecks.enforce()
        timeout = ready_timeout or Duration.minutes(Node.timeout_minutes)
        minutes = whole_duration(self, "ready_timeout", timeout, "minutes")
        group = known_placement_group_name(self, placement_group)
        node = NodeSettings(
            cluster_name=name,
            type=kind,
            logical_neuroncore_config=logical_neuroncore_config,
            secondary_interface_type=secondary_interface_type or "efa",
            framework=None if image.source else parameter_framework(default_image(kind)),
            neuron_software=image.neuron_software,
            mounts=tuple(file_system.kind for file_system in file_systems),
            setup_script=None if setup is None else setup.text,
            suppress_checks=checks.suppress,
            verification=checks.verification,
            internode_ssh=internode_ssh,
            metrics_port=metrics_port,
        )
        check_known(self, "node_generation", node_generation, why="it is converted to text at synthesis")
        check_known(self, "max_replacements", max_replacements, why="it is converted to text at synthesis")
        check(
            self,
            node_count_problems(self, nodes, kind, capacity, catalog),
            block_placement(group, capacity.kind, field="placement_group"),
            core_config(logical_neuroncore_config, kind, field="logical_neuroncore_config"),
            form("dns_servers", tuple(dns_servers)),
            range_problems("node_timeout_minutes", minutes, "minutes", field="ready_timeout"),
            form("node_replacements", max_replacements, field="max_replacements"),
            form("node_generation", node_generation),
            form("cloudwatch_metrics", cloudwatch_metrics),
            form("metrics_port", metrics_port),
            script_for_bash(node.setup_script, field="setup"),
            software_for_devices(image.neuron_software, kind, field="image"),
        )
        check_secondary_interfaces(self, secondary_interface_type, node)
        check_file_systems(self, file_systems, vpc)
        check_cache(self, cache)
        check_sleep(self, sleep)
        check_key(self, "volume_key", volume_key)
        check_granting_key(self, "encryption_key", encryption_key)
        check_groups(self, security_groups, vpc=vpc)
        self._make(
            FleetProps(
                node=node,
                nodes=nodes,
                capacity=capacity,
                image=image,
                root_volume=checked_root_volume(
                    self,
                    size=root_volume_size,
                    throughput=root_volume_throughput,
                    initialization_rate=root_volume_initialization_rate,
                    device_name=image.root_device_name,
                ),
                node_generation=node_generation,
                vpc=vpc,
                subnet=self._subnet(vpc, vpc_subnets, capacity, instance_type, node, nodes, file_systems, catalog),
                # Ubuntu's packages are downloaded over HTTP.
                outbound_tcp_ports=(HTTP, HTTPS) if image.neuron_software == "install" or setup else (HTTPS,),
                dns_servers=dns_servers,
                cache=CompileCache(self, "CompileCache", encryption_key=encryption_key) if cache is None else cache,
                timeout_minutes=minutes,
                replacements=Node.replacements if max_replacements is None else max_replacements,
                quota_check=quota_check,
                pilot=checked_pilot(
                    self,
                    cluster_name=name,
                    end=end,
                    budget=budget,
                    idle_limit=idle_limit,
                    notify_email=notify_email,
                    notices=notices,
                    job_notices=job_notices,
                    capacity=capacity,
                ),
                metrics=effective_metrics(cloudwatch_metrics, nodes),
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
        for key, text in fleet_warnings(self._props.plan_values(Stack.of(self).region)):
            Annotations.of(self).add_warning_v2(f"trn:{_PARAMETERS.get(key, key)}", text)

    def _subnet(
        self,
        vpc: ec2.IVpc,
        selection: ec2.SubnetSelection | None,
        capacity: Capacity,
        kind: ec2.InstanceType,
        node: NodeSettings,
        nodes: int,
        file_systems: Sequence[NodeFileSystem],
        catalog: Catalog | None,
    ) -> ec2.ISubnet:
        place = NeuronSubnet(
            self, "Subnet", vpc=vpc, vpc_subnets=selection, capacity=capacity, instance_type=kind, catalog=catalog
        )
        if node.neuron_software == "install":
            self.node.add_validation(ReachesInternet(vpc, place.candidates))
        check_addresses(self, node, nodes, place.candidates)
        check_file_system_zones(self, file_systems, place.subnet)
        return place.subnet

    @staticmethod
    def from_neuron_fleet_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        auto_scaling_group_name: str | None = None,
        role: Role | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        records_bucket: s3.IBucket | None = None,
        sleep_function_name: str | None = None,
        controller_function_name: str | None = None,
        pilot_topic_arn: str | None = None,
    ) -> INeuronFleet:
        """Import a fleet of the account and region, to grant permissions, open its ports, and get its metrics and
        events.

        `add_outputs()` adds the values to the outputs of the fleet's stack.

        Args:
            cluster_name: Name of the cluster. It is enough for `on_node_failed` and most metrics.
            auto_scaling_group_name: Name of the nodes' Auto Scaling group, for `auto_scaling_group`, `metric` and
                `grant_operate`. Default: none.
            role: Role of the nodes, for grants to the fleet. Default: none.
            security_group: EFA security group of the nodes, for `connections`. Default: none.
            records_bucket: The cluster's bucket, imported with its key if it has one, for `grant_run_jobs` and
                `grant_operate`. Default: none.
            sleep_function_name: Function that `trn sleep` invokes, for `grant_operate`. Default: none.
            controller_function_name: Function that replaces failed nodes, for `metric_controller_errors`. Default:
                none.
            pilot_topic_arn: Topic that stores the state of the pilot, for `grant_operate`: the output PilotTopic, or
                Notices without it. Default: none; the fleet has no end, budget, idle limit or Capacity Block.

        Raises:
            PropsError: The name of the cluster is invalid.
        """
        return ImportedFleet(
            scope,
            construct_id,
            cluster_name=cluster_name,
            auto_scaling_group_name=auto_scaling_group_name,
            role=cast(iam.IRole | None, role),
            security_group=security_group,
            records_bucket=records_bucket,
            sleep_function_name=sleep_function_name,
            controller_function_name=controller_function_name,
            pilot_topic_arn=pilot_topic_arn,
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
