"""The dashboard and the alarms of a fleet in CloudWatch."""

from collections.abc import Iterator, Sequence
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.fleet.fleet_interface import INeuronFleet
from trainium_cdk.physical_names import physical_name
from trainium_core.facts import facts
from trainium_core.prices.price import Price
from trainium_runtime.node_metrics import CORE_UTILIZATION, MEMORY_UTILIZATION, METRICS_NAMESPACE, NODE_DIMENSION

_FACTS = facts()["metrics"]
_MINUTES = _FACTS["minutes_between_runs"]
_LATE = -(-(_FACTS["minutes_before_run"] + _MINUTES) // _MINUTES)
"""Number of periods whose samples may not have been printed yet."""

_PERIOD = Duration.minutes(_MINUTES)
_RUNNING = "GroupInServiceInstances"
_WIDTH = 12
"""Half of the width of a dashboard."""


class FleetDashboard(Construct):
    """A dashboard with the metrics and alarms of a fleet, and these alarms.

    Samples are printed up to eleven minutes late, so each alarm also looks at earlier periods. An alarm without data is
    OK, because there is none while the cluster has no nodes.

    `alarms` are its alarms.
    """

    alarms: Sequence[cloudwatch.Alarm]

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        fleet: INeuronFleet,
        by_node: bool,
        node_price: Price | None,
        topic: sns.ITopic | None,
    ) -> None:
        """
        Args:
            fleet: The fleet, which has metrics in CloudWatch.
            by_node: Whether each node has its own metrics.
            node_price: List price of a node and hour. None: it is unknown, or nodes are not billed by the hour.
            topic: Topic for the messages of the alarms. None: they have no action.
        """
        super().__init__(scope, construct_id)
        self._fleet, self._by_node = fleet, by_node
        idle, percent = _FACTS["idle_job_minutes"], _FACTS["idle_job_percent"]
        self.alarms = (
            self._alarm(
                "ExecutionErrors",
                fleet.metric_execution_errors(period=_PERIOD),
                "Executions on the devices had errors, such as results with NaN: see the log of the job, and Errors in "
                "`trn nodes`.",
                breaching=1,
            ),
            self._alarm(
                "UncorrectedMemoryErrors",
                fleet.metric_uncorrected_memory_errors(period=_PERIOD),
                "A device counted uncorrected memory errors: see `trn nodes`. A failed node may already be replaced.",
                breaching=1,
            ),
            self._alarm(
                "IdleJob",
                fleet.metric_job_core_utilization(period=_PERIOD),
                f"The nodes that a job holds computed less than {percent} percent on average, for {idle} of the last "
                f"{idle + _LATE * _MINUTES} minutes: see `trn jobs` and `trn logs`; `trn stop` ends the job.",
                breaching=idle // _MINUTES,
                threshold=percent,
                comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            ),
            self._alarm(
                "SilentNodes",
                fleet.metric_silent_nodes(period=_PERIOD),
                "For ten minutes, the utilization of a verified node is unknown, or the node has sent no sample: see "
                "`trn nodes`.",
                breaching=2,
            ),
        )
        if topic is not None:
            action: Any = actions.SnsAction(topic)
            for alarm in self.alarms:
                alarm.add_alarm_action(action)
        self.dashboard: cloudwatch.Dashboard = cloudwatch.Dashboard(
            self, "Dashboard", dashboard_name=physical_name(self, "dashboard"), default_interval=Duration.hours(3)
        )
        widgets = [*self._device_graphs(), *self._cluster_graphs(node_price)]
        alarms: Any = [*self.alarms]
        self.dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=24, height=2))
        for first in range(0, len(widgets), 2):
            self.dashboard.add_widgets(*widgets[first : first + 2])

    def _alarm(
        self,
        construct_id: str,
        metric: cloudwatch.Metric,
        description: str,
        *,
        breaching: int,
        threshold: float = 1,
        comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    ) -> cloudwatch.Alarm:
        """An alarm that is raised by a number of periods beyond a threshold."""
        return metric.create_alarm(
            self,
            construct_id,
            alarm_description=f"Cluster {self._fleet.cluster_name}: {description}",
            threshold=threshold,
            comparison_operator=comparison,
            datapoints_to_alarm=breaching,
            evaluation_periods=breaching + _LATE,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _device_graphs(self) -> Iterator[cloudwatch.IWidget]:
        fleet, minute = self._fleet, Duration.minutes(1)
        job = fleet.metric_job_core_utilization(period=minute, label="nodes that a job holds")
        mean = fleet.metric_core_utilization(period=minute, label="all nodes")
        yield self._graph("Utilization of the cores, percent", self._by_nodes(CORE_UTILIZATION, mean), percent=True)
        limit = cloudwatch.HorizontalAnnotation(value=_FACTS["idle_job_percent"], label="alarm below")
        yield self._graph("Utilization by the job, percent", [job], percent=True, annotations=[limit])
        mean = fleet.metric_memory_utilization(period=minute, label="all nodes")
        yield self._graph("Used device memory, percent", self._by_nodes(MEMORY_UTILIZATION, mean), percent=True)
        errors = [
            fleet.metric_execution_errors(label="executions with errors"),
            fleet.metric_uncorrected_memory_errors(label="uncorrected memory errors"),
        ]
        yield self._graph("Errors in five minutes", errors)

    def _cluster_graphs(self, node_price: Price | None) -> Iterator[cloudwatch.IWidget]:
        running = self._fleet.metric(_RUNNING, period=_PERIOD, statistic="Maximum", label="running nodes")
        yield self._graph("Nodes", [running, self._fleet.metric_silent_nodes(label="silent nodes")])
        if node_price is not None and node_price.usd is not None:
            metric: Any = running
            spent = cloudwatch.MathExpression(
                expression=f"nodes * {node_price.usd}",
                using_metrics={"nodes": metric},
                period=_PERIOD,
                label=f"{node_price.usd} USD for a node, {node_price.date}",
            )
            yield self._graph("List price of running nodes, USD per hour", [spent])

    def _by_nodes(self, name: str, mean: cloudwatch.Metric) -> Sequence[cloudwatch.IMetric]:
        """The mean of the cluster, and each node if it has its own metrics."""
        if not self._by_node:
            return [mean]
        namespace = f"{METRICS_NAMESPACE}/{self._fleet.cluster_name}"
        query = f'{{"{namespace}","{NODE_DIMENSION}"}} MetricName="{name}"'
        each = cloudwatch.MathExpression(
            expression=f"SEARCH('{query}', 'Average', 60)",
            label=f"${{PROP('Dim.{NODE_DIMENSION}')}}",
            period=Duration.minutes(1),
        )
        return [mean, each]

    def _graph(
        self,
        title: str,
        metrics: Any,
        *,
        percent: bool = False,
        annotations: Sequence[cloudwatch.HorizontalAnnotation] = (),
    ) -> cloudwatch.IWidget:
        return cloudwatch.GraphWidget(
            title=title,
            left=metrics,
            left_y_axis=cloudwatch.YAxisProps(min=0, max=100 if percent else None, show_units=False),
            left_annotations=[*annotations],
            width=_WIDTH,
        )
