"""The nodes of a plan."""

from collections.abc import Sequence

from aws_cdk import CfnAutoScalingRollingUpdate, CfnUpdatePolicy, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.compile_cache import CompileCache
from trainium_cdk.fleet_gate import FleetGate
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.launch_template import NeuronLaunchTemplate
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.quota_gate import QuotaGate
from trainium_cdk.security_group import EfaSecurityGroup
from trainium_cdk.service_role import service_role
from trainium_core.plan import Plan
from trainium_userdata import NodePlaces, node_user_data

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

    The deployment ends when every node has proved that it is what the catalogue says. `group`, `launch_template`,
    `role` and `security_group` are the CDK objects.
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
    ) -> None:
        """
        vpc, subnet: where the nodes go. The subnet's zone must offer the plan's type, and the subnet must reach S3.
        cache: the compile cache the nodes may use.
        security_groups: groups besides the fleet's own EfaSecurityGroup. Default: none.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        web = (80, 443) if plan.effective_egress == "nat-gateway" else (443,)
        self.security_group = EfaSecurityGroup(self, "SecurityGroup", vpc=vpc, outbound_tcp_ports=web)
        records = NodeRecords(self, "Records")
        self.role = self._role(cache, records)
        places = NodePlaces(region=stack.region, cache_url=cache.url, report_url=records.url)
        self.launch_template = NeuronLaunchTemplate(
            self,
            "LaunchTemplate",
            plan=plan,
            security_groups=[self.security_group, *security_groups],
            instance_profile=iam.InstanceProfile(self, "InstanceProfile", role=self.role),
            user_data=node_user_data(plan, places),
            placement_group_name=self._placement_group_name(plan),
        ).template
        self.group = self._group(plan, subnet)
        # What a node needs at boot, and what must still be there while it goes.
        self.group.node.add_dependency(self.role, self.security_group, cache, records)
        if isinstance(vpc, ec2.Vpc):
            self.group.node.add_dependency(vpc)
        if plan.quota_gate == "on":
            self.group.node.add_dependency(QuotaGate(self, "QuotaGate", plan=plan))
        self.gate = FleetGate(
            self,
            "Gate",
            group_name=self.group.ref,
            nodes=plan.nodes,
            launch_template_version=self.launch_template.attr_latest_version_number,
            records=records,
            timeout_minutes=plan.node_timeout_minutes,
        )

    def _role(self, cache: CompileCache, records: NodeRecords) -> iam.IRole:
        role = service_role(self, "Role", "ec2.amazonaws.com")
        role.add_to_principal_policy(iam.PolicyStatement(actions=_SESSION_ACTIONS, resources=["*"]))
        without_resources = "Session Manager's actions know no resources (Service Authorization Reference)"
        justify_wildcard(role, "*", without_resources)
        justify(role, checkov={"CKV_AWS_111": without_resources})
        cache.grant_use(role)
        records.grant_write(role)
        return role

    def _placement_group_name(self, plan: Plan) -> str | None:
        if plan.creates_placement_group:
            return ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster").attr_group_name
        return plan.placement_group

    def _group(self, plan: Plan, subnet: ec2.ISubnet) -> autoscaling.CfnAutoScalingGroup:
        nodes = str(plan.nodes)
        group = autoscaling.CfnAutoScalingGroup(
            self,
            "Group",
            min_size=nodes,
            max_size=nodes,
            desired_capacity=nodes,
            vpc_zone_identifier=[subnet.subnet_id],
            launch_template=autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty(
                launch_template_id=self.launch_template.ref, version=self.launch_template.attr_latest_version_number
            ),
        )
        justify(group, cdk_nag={"AS3": "the gate watches every launch of a deployment; a pilot has nobody on call"})
        # A changed launch template replaces the nodes. None are kept in service meanwhile: half a cluster trains
        # nothing, and a reservation has no room for a second set.
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
            )
        )
        return group
