"""The interface of fleets, both of this app and imported ones."""

from typing import Any, Protocol, TypedDict, Unpack

import jsii
from aws_cdk import Duration
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct, Node

from trainium_cdk.cdk_types import RuleTarget
from trainium_cdk.checks import check, form, refuse
from trainium_runtime.naming import CLUSTER_TAG, NODE_STATE_TAG

METRICS_NAMESPACE = "TrainiumCdk"
FAILED_NODES = "FailedNodes"
_OWN_IDS = ("AutoScalingGroup", FAILED_NODES, "Outputs")
"""IDs of parts that a fleet creates on demand."""


class MetricOptions(TypedDict, total=False):
    """Arguments of cloudwatch.Metric that a metric of a fleet takes."""

    account: str
    color: str
    id: str
    label: str
    period: Duration
    region: str
    stack_account: str
    stack_region: str
    statistic: str
    unit: cloudwatch.Unit
    visible: bool


class INeuronFleet(Protocol):
    """A fleet of Trainium nodes, of this app or imported."""

    @property
    def node(self) -> Node:
        """The construct's place in the app."""
        ...

    @property
    def cluster_name(self) -> str:
        """Value of the tag trn:cluster on every resource of the fleet; `trn` finds the fleet by it."""
        ...

    @property
    def auto_scaling_group(self) -> autoscaling.IAutoScalingGroup:
        """The nodes' Auto Scaling group."""
        ...

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The nodes' role, to grant permissions to."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """The nodes' EFA security group, to open ports in."""
        ...

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """A metric of the Auto Scaling group.

        Args:
            metric_name: Name of a metric of Amazon EC2 Auto Scaling.
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the average over five minutes.
        """
        ...

    def metric_failed_nodes(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many nodes failed.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the sum over five minutes.
        """
        ...

    def on_node_failed(
        self, construct_id: str, target: RuleTarget | None = None, *, description: str | None = None
    ) -> events.Rule:
        """Create a rule that sends an event when a node fails.

        Args:
            construct_id: ID of the rule.
            target: The receiver of the event, such as targets.SnsTopic(topic). Default: none.
            description: Description of the rule. Default: none.
        """
        ...


@jsii.implements(iam.IGrantable, ec2.IConnectable)
class FleetBase(Construct):
    """The common parts of fleets of this app and imported ones."""

    role: iam.IRole
    _cluster_name: str
    _connections: ec2.Connections
    _group_name: str

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self._group: autoscaling.IAutoScalingGroup | None = None

    @property
    def cluster_name(self) -> str:
        """Value of the tag trn:cluster on every resource of the fleet; `trn` finds the fleet by it."""
        return self._cluster_name

    @property
    def auto_scaling_group_name(self) -> str:
        """Name of the nodes' Auto Scaling group."""
        return self._group_name

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The nodes' role: `bucket.grant_read(fleet)` grants to it."""
        return self.role

    @property
    def connections(self) -> ec2.Connections:
        """The nodes' EFA security group: `fleet.connections.allow_from(other, ec2.Port.tcp(8080))` opens a port."""
        return self._connections

    @property
    def auto_scaling_group(self) -> autoscaling.IAutoScalingGroup:
        """The nodes' Auto Scaling group. Do not change its size: the fleet manages it.

        As for every imported group, the CDK ignores its `add_user_data`: pass `setup` to the fleet.
        """
        if self._group is None:
            name = self.auto_scaling_group_name
            self._group = autoscaling.AutoScalingGroup.from_auto_scaling_group_name(self, "AutoScalingGroup", name)
        return self._group

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """A metric of the Auto Scaling group, such as `GroupInServiceInstances`.

        Args:
            metric_name: Name of a metric of Amazon EC2 Auto Scaling.
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the average over five minutes.
        """
        dimensions = {"AutoScalingGroupName": self.auto_scaling_group_name}
        return cloudwatch.Metric(
            namespace="AWS/AutoScaling", metric_name=metric_name, dimensions_map=dimensions, **options
        )

    def metric_failed_nodes(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many nodes reported a failure. Without a failure there is no data. A failure may be counted twice.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the sum over five minutes.
        """
        options.setdefault("statistic", "Sum")
        namespace = f"{METRICS_NAMESPACE}/{self.cluster_name}"
        return cloudwatch.Metric(namespace=namespace, metric_name=FAILED_NODES, **options)

    def on_node_failed(
        self, construct_id: str, target: RuleTarget | None = None, *, description: str | None = None
    ) -> events.Rule:
        """Create a rule that sends an event when a node fails. The instance's tag `trn:reason` says why.

        The event is `Tag Change on Resource`, for the tag that the controller sets on the instance.

        Args:
            construct_id: ID of the rule, in the scope of the fleet.
            target: The receiver of the event, such as targets.SnsTopic(topic). Default: none; add one with
                add_target().
            description: Description of the rule. Default: none.

        Raises:
            PropsError: A part of the fleet has the id.
        """
        if construct_id in _OWN_IDS or self.node.try_find_child(construct_id) is not None:
            allowed = "an id that no other part of the fleet has"
            raise refuse(self, "construct_id", construct_id, allowed=allowed, fix="choose another, such as NodeFailed")
        rule = events.Rule(
            self,
            construct_id,
            description=description,
            event_pattern=events.EventPattern(
                source=["aws.tag"],
                detail_type=["Tag Change on Resource"],
                detail={
                    "service": ["ec2"],
                    "resource-type": ["instance"],
                    "changed-tag-keys": [NODE_STATE_TAG],
                    "tags": {CLUSTER_TAG: [self.cluster_name], NODE_STATE_TAG: ["failed"]},
                },
            ),
        )
        if target is not None:
            rule_target: Any = target
            rule.add_target(rule_target)
        return rule


class ImportedFleet(FleetBase):
    """An imported fleet."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        auto_scaling_group_name: str,
        role: iam.IRole,
        security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(scope, construct_id)
        check(self, form("cluster_name", cluster_name))
        self._cluster_name, self._group_name, self.role = cluster_name, auto_scaling_group_name, role
        self._connections = ec2.Connections(security_groups=[security_group])
