"""The common parts of fleets of this app and imported ones."""

from collections.abc import Mapping
from typing import Any, TypeVar, Unpack

import jsii
from aws_cdk import Resource
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import RuleTarget
from trainium_cdk.checks import refuse
from trainium_cdk.fleet.fleet_grants import grant_operate, grant_run_jobs
from trainium_cdk.fleet.fleet_interface import MetricOptions
from trainium_runtime.naming import CLUSTER_TAG, NODE_STATE_TAG
from trainium_runtime.node_metrics import (
    CORE_UTILIZATION,
    EXECUTION_ERRORS,
    JOB_CORE_UTILIZATION,
    MEMORY_UTILIZATION,
    METRICS_NAMESPACE,
    SILENT_NODES,
    UNCORRECTED_MEMORY_ERRORS,
)

_T = TypeVar("_T")

FAILED_NODES = "FailedNodes"
_OWN_IDS = ("AutoScalingGroup", FAILED_NODES, "Outputs")
"""IDs of parts that a fleet creates on demand."""


@jsii.implements(iam.IGrantable, ec2.IConnectable)
class FleetBase(Resource):
    """The common parts of fleets of this app and imported ones.

    What an imported fleet was not given is None.
    """

    _cluster_name: str
    _connections: ec2.Connections | None = None
    _controller_name: str | None = None
    _group_name: str | None = None
    _pilot_topic_arn: str | None = None
    _records_bucket: s3.IBucket | None = None
    _role: iam.IRole | None = None
    _sleep_function_name: str | None = None

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self._imported_group: autoscaling.IAutoScalingGroup | None = None

    @property
    def cluster_name(self) -> str:
        """Value of the tag trn:cluster on every resource of the fleet; `trn` finds the fleet by it."""
        return self._cluster_name

    @property
    def auto_scaling_group_name(self) -> str:
        """Name of the nodes' Auto Scaling group."""
        return self._given("auto_scaling_group_name", self._group_name)

    @property
    def role(self) -> iam.IRole:
        """The nodes' role."""
        return self._given("role", self._role)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The nodes' role: `bucket.grant_read(fleet)` grants to it."""
        return self.role

    @property
    def connections(self) -> ec2.Connections:
        """The nodes' EFA security group: `fleet.connections.allow_from(other, ec2.Port.tcp(8080))` opens a port."""
        return self._given("security_group", self._connections)

    @property
    def auto_scaling_group(self) -> autoscaling.IAutoScalingGroup:
        """The nodes' Auto Scaling group. Do not change its size: the fleet manages it.

        As for every imported group, the CDK ignores its `add_user_data`: pass `setup` to the fleet.
        """
        if self._imported_group is None:
            name = self.auto_scaling_group_name
            self._imported_group = autoscaling.AutoScalingGroup.from_auto_scaling_group_name(
                self, "AutoScalingGroup", name
            )
        return self._imported_group

    def add_to_role_policy(self, statement: iam.PolicyStatement) -> None:
        """Add a statement to the policy of the nodes' role.

        Args:
            statement: What nodes may do. Jobs may do it too.
        """
        self.role.add_to_principal_policy(statement)

    def grant_run_jobs(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of `trn run`, `stop`, `cp`, `jobs` and `logs`, without `--wake`.

        Anyone who can run jobs controls the nodes (docs/concepts/trust.md).

        Args:
            grantee: A principal whose policies the app can change, such as the role of a pipeline. Others, such as an
                account, get only the permissions on the cluster's bucket.

        Raises:
            PropsError: The CDK cannot grant permissions to the grantee, or the fleet was imported without its
                records_bucket.
        """
        return grant_run_jobs(self, grantee, self._given("records_bucket", self._records_bucket))

    def grant_operate(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of `trn nodes`, `list`, `status`, `sleep` and `wake`, and those of `grant_run_jobs`.

        Args:
            grantee: A principal whose policies the app can change, such as the role of a pipeline. Others, such as an
                account, get only the permissions of `grant_run_jobs` on the cluster's bucket.

        Raises:
            PropsError: The CDK cannot grant permissions to the grantee, or the fleet was imported without its
                records_bucket, auto_scaling_group_name or sleep_function_name.
        """
        return grant_operate(
            self,
            grantee,
            self._given("records_bucket", self._records_bucket),
            group_name=self.auto_scaling_group_name,
            sleep_function_name=self._sleep_function(),
            pilot_topic_arn=self._pilot_topic_arn,
        )

    def metric(self, metric_name: str, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """A metric of the Auto Scaling group, such as `GroupInServiceInstances`.

        Args:
            metric_name: Name of a metric of Amazon EC2 Auto Scaling.
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the average over five minutes.
        """
        dimensions = {"AutoScalingGroupName": self.auto_scaling_group_name}
        return self._attached("AWS/AutoScaling", metric_name, options, dimensions)

    def metric_failed_nodes(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many nodes reported a failure. Without a failure there is no data. A failure may be counted twice.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the sum over five minutes.
        """
        return self._metric(FAILED_NODES, "Sum", options)

    def metric_core_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Mean utilization of all NeuronCores or GPUs of the cluster, in percent.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the average over five minutes.
        """
        return self._node_metric(CORE_UTILIZATION, "Average", options)

    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Used part of the device memory of the cluster, in percent.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the average over five minutes.
        """
        return self._node_metric(MEMORY_UTILIZATION, "Average", options)

    def metric_execution_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many executions on the devices failed, or completed with errors such as NaN.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the sum over five minutes.
        """
        return self._node_metric(EXECUTION_ERRORS, "Sum", options)

    def metric_uncorrected_memory_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many uncorrected memory errors the devices counted.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the sum over five minutes.
        """
        return self._node_metric(UNCORRECTED_MEMORY_ERRORS, "Sum", options)

    def metric_job_core_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Mean utilization of the NeuronCores or GPUs of the nodes that a job holds, in percent.

        Without a job there is no data.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the average over five minutes.
        """
        return self._node_metric(JOB_CORE_UTILIZATION, "Average", options)

    def metric_silent_nodes(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many verified nodes have no sample with a utilization in five minutes.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the maximum over five minutes.
        """
        return self._node_metric(SILENT_NODES, "Maximum", options)

    def metric_controller_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Errors of the function that replaces failed nodes. Lambda retries a failed invocation twice; each failure
        counts.

        Args:
            options: Arguments of cloudwatch.Metric, such as `period`. Default: the sum over five minutes.
        """
        options.setdefault("statistic", "Sum")
        dimensions = {"FunctionName": self._given("controller_function_name", self._controller_name)}
        return self._attached("AWS/Lambda", "Errors", options, dimensions)

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

    def _node_metric(self, name: str, statistic: str, options: MetricOptions) -> cloudwatch.Metric:
        """A metric that the controller prints."""
        return self._metric(name, statistic, options)

    def _metric(self, name: str, statistic: str, options: MetricOptions) -> cloudwatch.Metric:
        options.setdefault("statistic", statistic)
        return self._attached(f"{METRICS_NAMESPACE}/{self.cluster_name}", name, options)

    def _attached(
        self, namespace: str, name: str, options: MetricOptions, dimensions: Mapping[str, str] | None = None
    ) -> cloudwatch.Metric:
        """A metric in the account and region of this stack, so that an alarm in another region is refused."""
        metric = cloudwatch.Metric(namespace=namespace, metric_name=name, dimensions_map=dimensions, **options)
        return metric.attach_to(self)

    def _sleep_function(self) -> str | None:
        """Name of the function that sets the stack's parameter `Asleep`; None if the stack has no such parameter."""
        return self._sleep_function_name

    def _given(self, attribute: str, value: _T | None) -> _T:
        """A value of the fleet. Raises PropsError if the fleet was imported without it."""
        if value is None:
            allowed = "the value of the fleet, which is needed here; the outputs of its stack show it"
            fix = f"pass {attribute} to NeuronFleet.from_neuron_fleet_attributes"
            raise refuse(self, attribute, None, allowed=allowed, fix=fix)
        return value
