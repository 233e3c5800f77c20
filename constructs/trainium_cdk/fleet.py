"""The nodes of a plan."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import CfnAutoScalingRollingUpdate, CfnUpdatePolicy, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from trainium_cdk.compile_cache import CompileCache
from trainium_cdk.fleet_gate import FleetGate
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.launch_template import NeuronLaunchTemplate
from trainium_cdk.launch_template_version import LaunchTemplateVersion
from trainium_cdk.node_file_system import NodeFileSystem
from trainium_cdk.node_keeper import NodeKeeper
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.pilot import Pilot
from trainium_cdk.plan_network import plan_security_group
from trainium_cdk.plan_scope import check_region, tag_all
from trainium_cdk.quota_gate import QuotaGate
from trainium_cdk.service_role import service_role
from trainium_cdk.sleep_switch import SleepSwitch
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_userdata import NodeLocations, node_script, node_user_data

_LARGEST_BATCH = 100  # AutoScalingRollingUpdate.MaxBatchSize

# The least that Session Manager needs (Systems Manager documentation, minimum permissions for a session).
_SESSION_ACTIONS = [
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
]


class NeuronFleet(Construct):
    """An Auto Scaling group of exactly the nodes of a plan, in one subnet, connected by EFA where the type has it.

    The deployment ends when every node has proved that it is what the catalogue says, and has reached all others.
    `group`, `launch_template`, `role` and `security_group` are the CDK objects, `version`, `records`, `keeper`, `gate`
    and `pilot` (None if the plan has no end or budget) the constructs that look after the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: Plan,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        cache: CompileCache,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        file_systems: Sequence[NodeFileSystem] = (),
        sleep: SleepSwitch | None = None,
    ) -> None:
        """
        plan: what the nodes are, and how many.
        vpc, subnet: where the nodes go. The subnet's zone must offer the plan's type, and the subnet must reach S3.
        cache: the compile cache the nodes may use.
        security_groups: groups besides the fleet's own EfaSecurityGroup. Default: none.
        file_systems: what the nodes mount, one of each kind at most. Default: nothing.
        sleep: whether there are nodes. Default: always.
        """
        super().__init__(scope, construct_id)
        check_region(self, plan)
        tag_all(self, plan)
        stack = Stack.of(self)
        self.security_group = plan_security_group(
            self,
            "SecurityGroup",
            plan,
            vpc=vpc,
            egress=plan.network.effective_egress,
            downloads=plan.node.neuron_software == "install" or plan.setup_script is not None,
        )
        self.records = records = NodeRecords(self, "Records")
        self.role = self._role(plan, cache)
        script = self._node_script(plan)
        places = NodeLocations(
            region=stack.region,
            cache_url=cache.url,
            report_url=records.url,
            node_script_url=script.s3_object_url,
        )
        for file_system in file_systems:
            file_system.allow(self.security_group)
            places = file_system.added_to(places)
        profile = iam.InstanceProfile(self, "InstanceProfile", role=self.role)
        groups = [self.security_group, *security_groups]
        placement_group = self._placement_group_name(plan)
        made = NeuronLaunchTemplate(
            self,
            "LaunchTemplate",
            plan=plan,
            security_groups=groups,
            instance_profile=profile,
            user_data=node_user_data(plan, places),
            placement_group_name=placement_group,
        )
        self.launch_template = made.template
        self.version = LaunchTemplateVersion(
            self,
            "LaunchTemplateVersion",
            plan=plan,
            template=made.template,
            image_id=made.image_id,
            node_script_arn=script.bucket.arn_for_objects(script.s3_object_key),
            uses={
                **{name: value for name, value in asdict(places).items() if value and name != "node_script_url"},
                **{f"security_group_{number}": group.security_group_id for number, group in enumerate(groups)},
                "instance_profile": profile.instance_profile_arn,
                **({"placement_group": placement_group} if placement_group else {}),
            },
        )
        self._let_nodes_fetch(self.version.node_script)
        self.group = self._group(plan, subnet)
        # What a node needs at boot, and what must still be there while it goes.
        self.group.node.add_dependency(self.role, self.security_group, cache, records, *file_systems)
        if isinstance(vpc, ec2.Vpc):
            self.group.node.add_dependency(*(sleep.always_there(vpc) if sleep else [vpc]))
        else:
            # An S3 endpoint may have been added to it.
            self.group.node.add_dependency(vpc)
        if plan.quota_gate:
            self.group.node.add_dependency(QuotaGate(self, "QuotaGate", plan=plan))
        self.keeper = NodeKeeper(
            self,
            "Keeper",
            group_name=self.group.ref,
            cluster_name=plan.cluster_name,
            records=records,
            replacements=plan.node.replacements if plan.node.recovery else 0,
            capacity_block_id=plan.reservation_id if plan.capacity == "capacity-block" else None,
        )
        self.pilot = None
        if plan.ends_by_itself or plan.pilot.budget_usd is not None:
            self.pilot = Pilot(self, "Pilot", plan=plan, group_name=self.group.ref, sleep=sleep, keeper=self.keeper)
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

    def _role(self, plan: Plan, cache: CompileCache) -> iam.IRole:
        role = service_role(self, "Role", "ec2.amazonaws.com")
        role.add_to_principal_policy(iam.PolicyStatement(actions=_SESSION_ACTIONS, resources=["*"]))
        without_resources = "Session Manager's actions know no resources (Service Authorization Reference)"
        justify_wildcard(role, "*", without_resources)
        justify(role, checkov={"CKV_AWS_111": without_resources})
        cache.grant_use(role)
        self.records.grant_node(role, internode_ssh=plan.node.internode_ssh, internode_tests=plan.uses_efa)
        return role

    def _node_script(self, plan: Plan) -> Asset:
        """Where in S3 the nodes find what sets them up and verifies them: their user data have no room for it."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "node-script.sh"
            file.write_bytes(node_script(plan).encode())
            return Asset(self, "NodeScript", path=str(file))

    def _let_nodes_fetch(self, node_script_arn: str) -> None:
        statement = iam.PolicyStatement(actions=["s3:GetObject"], resources=[node_script_arn])
        self.role.add_to_principal_policy(statement)

    def _placement_group_name(self, plan: Plan) -> str | None:
        if plan.creates_placement_group:
            return ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster").attr_group_name
        return plan.network.placement_group

    def _group(self, plan: Plan, subnet: ec2.ISubnet) -> autoscaling.CfnAutoScalingGroup:
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
