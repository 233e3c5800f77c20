"""A fleet of this app: its metrics, security groups, load balancers and outputs."""

from collections.abc import Iterator
from typing import Any, Unpack, cast

import jsii
from aws_cdk import Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_logs as logs
from constructs import Construct

from trainium_cdk.checks import refuse
from trainium_cdk.fleet.controller import Controller
from trainium_cdk.fleet.dashboard import FleetDashboard
from trainium_cdk.fleet.fleet_base import FAILED_NODES, FleetBase
from trainium_cdk.fleet.fleet_interface import MetricOptions
from trainium_cdk.fleet.fleet_props import FleetProps
from trainium_cdk.fleet.fleet_readiness import FleetReadiness
from trainium_cdk.fleet.launch_template import LaunchTemplateBase
from trainium_cdk.fleet.launch_template_version import LaunchTemplateVersion
from trainium_cdk.fleet.node_records import NodeRecords
from trainium_cdk.fleet.target_group import check_target_group
from trainium_cdk.network.security_group import EfaSecurityGroup, check_groups
from trainium_cdk.outputs import OUTPUTS, create_outputs
from trainium_cdk.pilot.pilot import Pilot
from trainium_cdk.storage.compile_cache import ICompileCache
from trainium_core.naming import FLEET_OUTPUT, GROUP_OUTPUT, RECORDS_OUTPUT, VERIFIED_NODES_OUTPUT
from trainium_core.nodes.next_steps import next_steps
from trainium_runtime.node_metrics import METRICS_NAMESPACE


@jsii.implements(elbv2.IApplicationLoadBalancerTarget, elbv2.INetworkLoadBalancerTarget)
class CreatedFleet(FleetBase):
    """A fleet of this app, whose parts its subclass creates."""

    cache: ICompileCache
    controller: Controller
    dashboard: FleetDashboard | None
    pilot: Pilot | None
    readiness: FleetReadiness
    records: NodeRecords
    security_group: EfaSecurityGroup
    version: LaunchTemplateVersion
    _group: autoscaling.CfnAutoScalingGroup
    _groups: list[ec2.ISecurityGroup]
    _launch_template: LaunchTemplateBase
    _props: FleetProps

    @property
    def launch_template(self) -> ec2.ILaunchTemplate:
        """The launch template of the nodes."""
        template: Any = self._launch_template  # in jsii a parameter has another name than in the interface
        return template

    def add_security_group(self, security_group: ec2.ISecurityGroup) -> None:
        """Add a security group to every network interface of the nodes. This replaces the nodes of a deployed fleet.

        Args:
            security_group: A group in the VPC of the nodes.

        Raises:
            PropsError: The group is in another VPC or region, the nodes already have it, or an interface supports no
                more groups.
        """
        check_groups(self, [*self._groups[1:], security_group], vpc=self._props.vpc)
        number = len(self._groups)
        self._groups.append(security_group)
        ids = [group.security_group_id for group in self._groups]
        template = cast(ec2.CfnLaunchTemplate, self._launch_template.node.default_child)
        for index in range(len(self._props.node.network_interfaces)):
            template.add_property_override(f"LaunchTemplateData.NetworkInterfaces.{index}.Groups", ids)
        self.version.add_use(f"security_group_{number}", security_group.security_group_id)

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        # Auto Scaling publishes metrics of a group only after they are enabled.
        everything = autoscaling.CfnAutoScalingGroup.MetricsCollectionProperty(granularity="1Minute")
        self._group.metrics_collection = [everything]
        return super().metric(metric_name, **options)

    def metric_failed_nodes(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many nodes reported a failure, counted by a metric filter on the log of the controller.

        Without a failure there is no data. A failure may be counted twice.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the sum over five minutes.
        """
        if self.node.try_find_child("FailedNodes") is None:
            logs.MetricFilter(
                self,
                "FailedNodes",
                log_group=self.controller.log_group,
                filter_pattern=logs.FilterPattern.string_value("$.record.state", "=", "failed"),
                metric_namespace=f"{METRICS_NAMESPACE}/{self.cluster_name}",
                metric_name=FAILED_NODES,
            )
        return super().metric_failed_nodes(**options)

    def _node_metric(self, name: str, statistic: str, options: MetricOptions) -> cloudwatch.Metric:
        if self._props.metrics == "none":
            allowed, fix = "a fleet with metrics in CloudWatch", "pass cloudwatch_metrics='cluster' to the fleet"
            raise refuse(self, "cloudwatch_metrics", "none", allowed=allowed, fix=fix)
        return super()._node_metric(name, statistic, options)

    def attach_to_application_target_group(
        self, target_group: elbv2.IApplicationTargetGroup
    ) -> elbv2.LoadBalancerTargetProps:
        """Register the nodes with a target group of an Application Load Balancer; `add_targets` calls this.

        Args:
            target_group: The target group. The nodes' security group then allows traffic from its load balancer.

        Raises:
            PropsError: The target type is not instance, or the group is in another VPC or region.
        """
        props = self._attach(target_group)
        target_group.register_connectable(self)
        return props

    def attach_to_network_target_group(self, target_group: elbv2.INetworkTargetGroup) -> elbv2.LoadBalancerTargetProps:
        """Register the nodes with a target group of a Network Load Balancer; `add_targets` calls this.

        Args:
            target_group: The target group. Open the nodes' port to its clients yourself.

        Raises:
            PropsError: The target type is not instance, or the group is in another VPC or region.
        """
        return self._attach(target_group)

    def add_outputs(self) -> None:
        """Add outputs to the stack: commands, such as one for a shell on the first node, and the names of resources.

        Raises:
            PropsError: It is called twice.
        """
        if self.node.try_find_child(OUTPUTS) is not None:
            fix = "remove the second call"
            raise refuse(self, "add_outputs", "a second call", allowed="one call for each fleet", fix=fix)
        destroy = f"cdk destroy {Stack.of(self).node.path}"
        create_outputs(Construct(self, OUTPUTS), fleet_outputs(self, self._props, destroy=destroy))

    def _attach(self, target_group: elbv2.ITargetGroup) -> elbv2.LoadBalancerTargetProps:
        check_target_group(self, target_group, self._props.vpc)
        attached = self._group.target_group_arns or ()
        self._group.target_group_arns = [*dict.fromkeys([*attached, target_group.target_group_arn])]
        return elbv2.LoadBalancerTargetProps(target_type=elbv2.TargetType.INSTANCE)


def fleet_outputs(
    fleet: CreatedFleet, props: FleetProps, *, destroy: str, sessions: bool = True
) -> Iterator[tuple[str, str, str]]:
    """The outputs of a fleet.

    Args:
        destroy: The command that destroys the stack.
        sessions: Whether Session Manager reaches the nodes.
    """
    steps = next_steps(
        cluster_name=fleet.cluster_name,
        nodes=props.nodes,
        processes=props.node.processes,
        region=Stack.of(fleet).region,
        group_name=fleet.auto_scaling_group_name,
        cache_url=fleet.cache.url,
        destroy=destroy,
        sessions=sessions,
    )
    yield from ((step.name, step.meaning, step.value) for step in steps)
    yield GROUP_OUTPUT, "The nodes' Auto Scaling group", fleet.auto_scaling_group_name
    yield "NodeRole", "The role of the nodes", fleet.role.role_arn
    yield "NodeSecurityGroup", "The EFA security group of the nodes", fleet.security_group.security_group_id
    yield RECORDS_OUTPUT, "The bucket of the node records", fleet.records.bucket.bucket_name
    if props.sleep is not None:
        yield "SleepFunction", "The function that `trn sleep` and `trn wake` invoke", props.sleep.function_name
    yield "ControllerFunction", "The function that replaces failed nodes and ends the pilot", fleet.controller.name
    yield "LaunchTemplate", "The launch template version of the nodes", fleet.version.summary
    yield FLEET_OUTPUT, "The result of the nodes' verification", fleet.readiness.summary
    yield VERIFIED_NODES_OUTPUT, "Number of nodes verified by the last deployment", fleet.readiness.verified_nodes
    yield from props.pilot.outputs()
    if fleet.pilot is not None:
        yield "Notices", "SNS topic of notices and alarms of the pilot", fleet.pilot.notices.topic_arn
        if fleet.pilot.props.notices is not None:
            yield "PilotTopic", "SNS topic whose tags store the state of the pilot", fleet.pilot.topic.topic_arn
