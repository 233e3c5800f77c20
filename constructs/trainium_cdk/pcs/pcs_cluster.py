"""A Slurm cluster of Trainium nodes on AWS PCS."""

from collections.abc import Iterator, Mapping
from typing import cast

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from trainium_cdk.fleet.capacity import Capacity, warn_if_reservation_is_shared
from trainium_cdk.fleet.cluster_names import claim_cluster, tag_all
from trainium_cdk.fleet.controller import Controller
from trainium_cdk.fleet.job_access import allow_jobs, allow_sessions
from trainium_cdk.fleet.launch_template import LaunchTemplateProps, NodeLaunchTemplate, simple_launch_template
from trainium_cdk.fleet.node_image import new_placement_group
from trainium_cdk.fleet.node_records import NodeRecords, role_unique_id
from trainium_cdk.fleet.quota_check import QuotaCheck
from trainium_cdk.from_plan import (
    add_plan_warnings,
    check_region,
    outbound_tcp_ports,
    plan_cache,
    plan_file_systems,
    plan_network,
    plan_pilot,
    plan_record,
    plan_root_volume,
)
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.network.security_group import EfaSecurityGroup
from trainium_cdk.outputs import create_outputs, plan_destroy_command, plan_outputs_scope
from trainium_cdk.pcs.lifecycle_scripts import Group, LifecycleScripts
from trainium_cdk.pcs.node_group_guard import NodeGroupGuard
from trainium_cdk.pcs.pcs_image import PcsImage
from trainium_cdk.pcs.scheduler_logs import SchedulerLogs
from trainium_cdk.pilot.pilot import Pilot
from trainium_cdk.service_role import allow, service_role
from trainium_cdk.stack_record import StackRecordParameter
from trainium_cdk.storage.compile_cache import CompileCache, allow_cache
from trainium_core.engines.pcs import slurm_settings
from trainium_core.naming import PCS_CLUSTER_OUTPUT, PCS_GROUP_OUTPUT, RECORDS_OUTPUT
from trainium_core.nodes.next_steps import DOCUMENT, LOGIN
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_runtime.naming import CLUSTER_TAG
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import slurm_script, slurm_user_data
from trainium_wire.stack_record import StackRecord

_ROLE_PATH = "/aws-pcs/"
"""AWS PCS accepts only roles below this path, or with the prefix AWSPCS (AWS PCS User Guide, instance profiles)."""

_PURCHASE_OPTIONS = {
    "on-demand": "ONDEMAND",
    "spot": "SPOT",
    "capacity-block": "CAPACITY_BLOCK",
    "reservation": "ONDEMAND",
}
_INTERRUPTIBLE = "interruptible-capacity-reservation"
_VERIFICATION, _LOGIN = "verification", "login"


class PcsCluster(Construct):
    """The Slurm cluster of a plan on AWS PCS: nodes that start with jobs, its queues, and a login node.

    No unverified node runs a job: nodes verify themselves before Slurm starts, at every boot, and are terminated if
    they fail. Beyond a limit of failures, a guard stops further launches.

    `cluster_id`, `node_group_id` and `login_group_id` (None without a login node) are IDs in AWS PCS; `network`,
    `security_group`, `cache`, `file_systems`, `records`, `role`, `logs`, `guard` and `pilot` are its parts. The
    cluster has the name in the plan. To change a property that AWS PCS cannot update, such as the size of the cluster,
    choose another name too. It adds outputs to the stack. In a PlanStack, their names have no prefix.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=4, stacks=("pcs",))
        slurm = PcsCluster(stack, "Slurm", plan=plan)
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """
        Args:
            plan: Describes the nodes; its section `pcs` holds the other settings.

        Raises:
            PlanError: The plan is for another region than the stack.
        """
        super().__init__(scope, construct_id)
        check_region(self, plan)
        claim_cluster(self, plan.cluster_name, kind="PcsCluster")
        tag_all(self, plan.cluster_name, plan.tags)
        self.record = StackRecordParameter(self, "Record", cluster_name=plan.cluster_name, record=self._stack_record)
        self.node.add_dependency(self.record)
        self._plan, self._node = plan, node_settings(slurm_settings.with_node_image(plan))
        self._capacity = Capacity(plan.capacity, plan.reservation_id)
        warn_if_reservation_is_shared(self, self._capacity)
        egress = plan.network.new_vpc_egress
        self.network = plan_network(
            self, "Network", plan, egress=egress, endpoint_services=slurm_settings.ENDPOINT_SERVICES
        )
        builds = plan.pcs.image is None
        self.security_group: EfaSecurityGroup = EfaSecurityGroup(
            self,
            "Nodes",
            vpc=self.network.vpc,
            outbound_tcp_ports=outbound_tcp_ports(
                plan, egress=egress, downloads=builds or plan.setup_script is not None
            ),
            dns_servers=plan.network.dns_servers,
        )
        self.cache: CompileCache = plan_cache(self, "CompileCache", plan)
        self.file_systems = plan_file_systems(self, plan, vpc=self.network.vpc, subnet=self.network.subnet)
        self.records: NodeRecords = NodeRecords(self, "Records")
        scripts = {_VERIFICATION: slurm_script(self._node, "slurm", slurm_version=plan.pcs.slurm_version)}
        if plan.pcs.login:
            scripts[_LOGIN] = slurm_script(self._node, "login", slurm_version=plan.pcs.slurm_version)
        self._scripts = LifecycleScripts(self, "Scripts", scripts=scripts)
        self.role: iam.IRole = self._role()
        self._profile = iam.InstanceProfile(self, "InstanceProfile", role=self.role)
        name = plan.cluster_name
        self.pilot: Pilot = Pilot(self, "Pilot", props=plan_pilot(plan), cluster_name=name, stops_nodes=False)
        self.controller: Controller | None = None
        if self.pilot.needs_controller or self.pilot.props.job_notices:
            self.controller = Controller(
                self, "Controller", cluster_name=name, nodes=plan.nodes, records=self.records, pilot=self.pilot
            )
        cluster = self._cluster()
        self.cluster_id: str = cluster.attr_id
        # Only on this cluster: the response to a registration contains the key of the cluster.
        allow(self.role, ["pcs:RegisterComputeNodeGroupInstance"], [cluster.attr_arn])
        self.logs: SchedulerLogs = SchedulerLogs(self, "Logs", cluster=cluster, cluster_name=plan.cluster_name)
        self._image_id = plan.pcs.image or self._new_image().image_id
        self._user_data = slurm_user_data(self._locations())
        group = self._nodes()
        self.node_group_id: str = group.attr_id
        self.login_group_id: str | None = self._login_node().attr_id if plan.pcs.login else None
        self.guard: NodeGroupGuard = NodeGroupGuard(
            self,
            "Guard",
            cluster=cluster,
            group=group,
            cluster_name=plan.cluster_name,
            role=self.role,
            records=self.records,
            topic=self.pilot.topic,
            failures=plan.node.replacements if plan.node.recovery else 0,
            nodes=plan.nodes,
            min_nodes=plan.pcs.min_nodes,
        )
        for queue in slurm_settings.queues(plan):
            self._add_queue(queue)
        add_plan_warnings(self, plan, "pcs")
        create_outputs(plan_outputs_scope(self), self._outputs())

    def _outputs(self) -> Iterator[tuple[str, str, str]]:
        yield PCS_CLUSTER_OUTPUT, "The AWS PCS cluster", self.cluster_id
        yield PCS_GROUP_OUTPUT, "The compute node group", self.node_group_id
        yield RECORDS_OUTPUT, "The bucket with the nodes' records", self.records.bucket.bucket_name
        yield "CompileCache", "S3 folder of compiled graphs", self.cache.url
        yield "SlurmLogs", "The log group of slurmctld and of completed jobs", self.logs.log_group.log_group_name
        topic = self.pilot.topic.topic_arn
        yield "Notices", "SNS topic of notices and alarms: failing nodes, the end and the budget of the pilot", topic
        destroy = plan_destroy_command(self, "pcs", self._plan.cluster_name)
        yield "Destroy", "Deletes the stack; retained resources stay", destroy
        yield from plan_pilot(self._plan).outputs()
        if self.login_group_id is not None:
            region = self._plan.region
            instance = (
                f"aws ec2 describe-instances --region {region} --filters "
                f"Name=tag:aws:pcs:compute-node-group-id,Values={self.login_group_id} "
                "Name=instance-state-name,Values=running "
                "--query 'Reservations[0].Instances[0].InstanceId' --output text"
            )
            session = (
                f"aws ssm start-session --region {region} --document-name {DOCUMENT} "
                f"--parameters command='{LOGIN}' --target $({instance})"
            )
            yield "SlurmLogin", "The compute node group of the login node", self.login_group_id
            meaning = "Opens a shell on the login node; requires the AWS CLI with the Session Manager plugin"
            yield "Session", meaning, session

    def _stack_record(self) -> StackRecord:
        topic_arn = self.pilot.recorded_topic_arn
        return plan_record(self, self._plan, "pcs", bucket=self.records.bucket, cache=self.cache, topic_arn=topic_arn)

    def _role(self) -> iam.IRole:
        role = service_role(self, "Role", "ec2.amazonaws.com", path=_ROLE_PATH)
        allow_sessions(role)
        any_resource = "ssmmessages has no resource-level permissions; instance IDs are not known at synthesis"
        justify_wildcard(role, "*", any_resource)
        justify(role, checkov={"CKV_AWS_111": any_resource})
        allow_cache(self.cache, role)
        allow_jobs(self, role, self._plan.jobs)
        self.records.grant_node(role)
        self._scripts.allow_fetching(role)
        return role

    def _locations(self) -> NodeLocations:
        locations = NodeLocations(
            region=Stack.of(self).region,
            cache_url=self.cache.url,
            report_url=self.records.url,
            cache_access="read" if self.cache.read_only else None,
            role_id=role_unique_id(self.role),
            node_script_url=self._scripts.url(_VERIFICATION),
        )
        for file_system in self.file_systems:
            file_system.allow(self.security_group)
            locations = file_system.added_to(locations)
        return locations

    def _cluster(self) -> pcs.CfnCluster:
        plan = self._plan
        cluster = pcs.CfnCluster(
            self,
            "Cluster",
            name=plan.cluster_name,
            size=slurm_settings.cluster_size(plan),
            scheduler=pcs.CfnCluster.SchedulerProperty(type="SLURM", version=plan.pcs.slurm_version),
            networking=pcs.CfnCluster.NetworkingProperty(
                subnet_ids=[self.network.subnet.subnet_id],
                security_group_ids=[self.security_group.security_group_id],
            ),
            slurm_configuration=pcs.CfnCluster.SlurmConfigurationProperty(
                accounting=pcs.CfnCluster.AccountingProperty(mode="STANDARD" if plan.pcs.accounting else "NONE"),
                scale_down_idle_time_in_seconds=60 * plan.pcs.idle_minutes,
                slurm_custom_settings=[
                    pcs.CfnCluster.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in slurm_settings.CLUSTER_SETTINGS.items()
                ],
            ),
        )
        # The pilot is deleted after the cluster, so that it can notify and retry if the cluster cannot be deleted.
        cluster.node.add_dependency(self.security_group, self.network, self.pilot)
        if self.controller is not None:
            cluster.node.add_dependency(self.controller)
        return cluster

    def _new_image(self) -> PcsImage:
        image = PcsImage(
            self,
            "Image",
            cluster_name=self._plan.cluster_name,
            region=self._plan.region,
            parent_image=self._plan.image,
            subnet=self.network.subnet,
            security_group=self.security_group,
        )
        image.node.add_dependency(self.network)
        return image

    def _nodes(self) -> Group:
        plan = self._plan
        placement_group = plan.network.placement_group or new_placement_group(self, self._node, self._capacity)
        template = NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            props=LaunchTemplateProps(
                node=self._node,
                capacity=self._capacity,
                market_type=self._market_type(),
                image_id=self._image_id,
                root_volume=plan_root_volume(plan),
                security_groups=[self.security_group],
                instance_profile=self._profile,
                user_data=self._user_data,
                placement_group_name=placement_group,
                tags=plan.tags,
                description=f"generation {plan.node.generation}",
            ),
        )
        option = "INTERRUPTIBLE_CAPACITY_RESERVATION" if plan.pcs.interruptible else _PURCHASE_OPTIONS[plan.capacity]
        group = self._group(
            "NodeGroup",
            name=slurm_settings.NODE_GROUP,
            instance_type=plan.instance_type,
            template=cast(ec2.CfnLaunchTemplate, template.node.default_child),
            scaling=(plan.pcs.min_nodes, plan.nodes),
            script=_VERIFICATION,
            purchase_option=option,
            slurm_configuration=Group.SlurmConfigurationProperty(
                gres_custom_settings=[dict(record) for record in slurm_settings.gres_records(plan)],
                slurm_custom_settings=[
                    Group.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in slurm_settings.group_settings(plan).items()
                ],
            ),
        )
        if plan.quota_check:
            quota = QuotaCheck(
                self,
                "QuotaCheck",
                instance_type=ec2.InstanceType(plan.instance_type),
                nodes=plan.nodes,
                capacity=self._capacity,
                cluster_name=plan.cluster_name,
                catalog=plan.catalog,
            )
            group.node.add_dependency(quota)
        return group

    def _market_type(self) -> str | None:
        """The market type in the launch template. None for Spot too: AWS PCS launches Spot Instances with EC2 Fleet,
        where Spot is a purchase option and not a market type."""
        if self._plan.pcs.interruptible:
            return _INTERRUPTIBLE
        return "capacity-block" if self._capacity.kind == "capacity-block" else None

    def _login_node(self) -> Group:
        plan = self._plan
        template = simple_launch_template(
            self,
            "LoginTemplate",
            image_id=self._image_id,
            security_groups=[self.security_group],
            root_volume=plan_root_volume(slurm_settings.with_login_volume(plan)).mapping(None),
            user_data=self._user_data,
            tags={**plan.tags, CLUSTER_TAG: plan.cluster_name, "Name": f"{plan.cluster_name}-login"},
        )
        return self._group(
            "LoginGroup",
            name=slurm_settings.login_group(plan),
            instance_type=plan.pcs.login_instance_type,
            template=template,
            scaling=(1, 1),
            script=_LOGIN,
            purchase_option="ONDEMAND",
        )

    def _group(
        self,
        construct_id: str,
        *,
        name: str,
        instance_type: str,
        template: ec2.CfnLaunchTemplate,
        scaling: tuple[int, int],
        script: str,
        purchase_option: str,
        slurm_configuration: Group.SlurmConfigurationProperty | None = None,
    ) -> Group:
        """
        Args:
            scaling: Minimum and maximum number of instances.
            script: Name of the lifecycle script.
        """
        least, most = scaling
        group = Group(
            self,
            construct_id,
            name=name,
            cluster_id=self.cluster_id,
            instance_configs=[Group.InstanceConfigProperty(instance_type=instance_type)],
            scaling_configuration=Group.ScalingConfigurationProperty(min_instance_count=least, max_instance_count=most),
            subnet_ids=[self.network.subnet.subnet_id],
            iam_instance_profile_arn=self._profile.instance_profile_arn,
            custom_launch_template=Group.CustomLaunchTemplateProperty(
                template_id=template.ref, version=template.attr_latest_version_number
            ),
            purchase_option=purchase_option,
            node_lifecycle_actions=self._scripts.actions(script),
            slurm_configuration=slurm_configuration,
        )
        group.node.add_dependency(
            self.role, self.cache, self.records, self._scripts, self.network, self.security_group, *self.file_systems
        )
        return group

    def _add_queue(self, queue: slurm_settings.SlurmQueue) -> None:
        settings: Mapping[str, str] = slurm_settings.queue_settings(self._plan, queue)
        made = pcs.CfnQueue(
            self,
            f"Queue-{queue.name}",
            name=queue.name,
            cluster_id=self.cluster_id,
            compute_node_group_configurations=[
                pcs.CfnQueue.ComputeNodeGroupConfigurationProperty(compute_node_group_id=self.node_group_id)
            ],
            slurm_configuration=pcs.CfnQueue.SlurmConfigurationProperty(
                slurm_custom_settings=[
                    pcs.CfnQueue.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in settings.items()
                ]
            ),
        )
        # Without a queue, no job can launch nodes before the guard exists.
        made.node.add_dependency(self.guard)
