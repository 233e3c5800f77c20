"""The interface of fleets, both of this app and imported ones."""

from typing import Protocol, TypedDict, Unpack

from aws_cdk import Duration, IResource
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam

from trainium_cdk.cdk_types import RuleTarget


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


class INeuronFleet(IResource, iam.IGrantable, ec2.IConnectable, Protocol):
    """A fleet of Trainium nodes, of this app or imported.

    A member of an imported fleet raises PropsError if it needs an attribute that was not given.
    """

    @property
    def cluster_name(self) -> str:
        """Value of the tag trn:cluster on every resource of the fleet; `trn` finds the fleet by it."""
        ...

    @property
    def auto_scaling_group(self) -> autoscaling.IAutoScalingGroup:
        """The nodes' Auto Scaling group."""
        ...

    @property
    def role(self) -> iam.IRole:
        """The nodes' role."""
        ...

    def add_to_role_policy(self, statement: iam.PolicyStatement) -> None:
        """Add a statement to the policy of the nodes' role.

        Args:
            statement: What nodes may do. Jobs may do it too.
        """
        ...

    def grant_run_jobs(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of `trn run`, `stop`, `cp`, `jobs` and `logs`, without `--wake`.

        Args:
            grantee: A principal, such as the role of a pipeline.
        """
        ...

    def grant_operate(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of `trn nodes`, `list`, `status`, `sleep` and `wake`, and those of `grant_run_jobs`.

        Args:
            grantee: A principal, such as the role of a pipeline.
        """
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

    def metric_core_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Mean utilization of all NeuronCores or GPUs of the cluster, in percent.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the average over five minutes.
        """
        ...

    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Used part of the device memory of the cluster, in percent.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the average over five minutes.
        """
        ...

    def metric_execution_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many executions on the devices failed, or completed with errors such as NaN.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the sum over five minutes.
        """
        ...

    def metric_uncorrected_memory_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many uncorrected memory errors the devices counted.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the sum over five minutes.
        """
        ...

    def metric_job_core_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Mean utilization of the NeuronCores or GPUs of the nodes that a job holds, in percent.

        Without a job there is no data.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the average over five minutes.
        """
        ...

    def metric_silent_nodes(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many verified nodes have no sample with a utilization in five minutes.

        Args:
            options: Arguments of cloudwatch.Metric. Default: the maximum over five minutes.
        """
        ...

    def metric_controller_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How many invocations of the controller failed.

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
