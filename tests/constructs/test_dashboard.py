"""The dashboard and the alarms of a cluster, and the metrics of a fleet."""

import json
from itertools import chain
from typing import Any
from xml.etree.ElementTree import tostring

import pytest
from aws_cdk import Duration, Stack

from tests.constructs.plans import RESERVATION
from tests.constructs.synth import Json, as_text, cluster_template
from tools.dashboard import NODES, PICTURE, drawn
from trainium_cdk import NeuronFleet
from trainium_core.facts import facts
from trainium_runtime.node_metrics import CLUSTER_METRICS, NODE_METRICS

DASHBOARD, ALARM = "AWS::CloudWatch::Dashboard", "AWS::CloudWatch::Alarm"
NAMESPACE = "TrainiumCdk/trn-pilot"
BLOCK = {"capacity": "capacity-block", "reservation_id": RESERVATION}


def body(**settings: Any) -> Json:
    return json.loads(as_text(cluster_template(**settings).properties(DASHBOARD)["DashboardBody"]))


def metrics(**settings: Any) -> list[Any]:
    """The metrics of all graphs: each a namespace, a name, dimensions and options, or options with an expression."""
    of_graphs = [widget["properties"] for widget in body(**settings)["widgets"] if widget["type"] == "metric"]
    return [*chain.from_iterable(graph["metrics"] for graph in of_graphs)]


def expressions(**settings: Any) -> list[str]:
    return [metric[0]["expression"] for metric in metrics(**settings) if isinstance(metric[0], dict)]


def alarms(**settings: Any) -> dict[str, Json]:
    """The alarms on metrics of nodes, by the name of the metric."""
    found = [alarm["Properties"] for alarm in cluster_template(**settings).resources(ALARM).values()]
    return {alarm["MetricName"]: alarm for alarm in found if alarm["Namespace"] == NAMESPACE}


def test_graphs_show_only_metrics_that_exist() -> None:
    shown = {metric[1] for metric in metrics() if metric[0] == NAMESPACE}
    assert shown == {*NODE_METRICS, *CLUSTER_METRICS}
    others = {tuple(metric[:2]) for metric in metrics() if metric[0] != NAMESPACE and isinstance(metric[0], str)}
    assert others == {("AWS/AutoScaling", "GroupInServiceInstances")}
    assert cluster_template().properties("AWS::AutoScaling::AutoScalingGroup")["MetricsCollection"]


def test_each_node_has_a_line_if_nodes_have_metrics() -> None:
    searches = [text for text in expressions(nodes=16) if text.startswith("SEARCH")]
    assert [text.partition("MetricName=")[2].split('"')[1] for text in searches] == [
        "CoreUtilization",
        "MemoryUtilization",
    ]
    assert all(f'{{"{NAMESPACE}","InstanceId"}}' in text for text in searches)
    assert not [text for text in expressions(nodes=17) if text.startswith("SEARCH")]


@pytest.mark.parametrize(("settings", "price"), [({}, "nodes * 21.5"), (BLOCK, None)], ids=["on demand", "prepaid"])
def test_money_is_the_price_of_a_node_unless_it_is_prepaid(settings: dict[str, Any], price: str | None) -> None:
    found = [text for text in expressions(**settings) if not text.startswith("SEARCH")]
    assert found == ([price] if price else [])


def test_dashboard_shows_all_alarms_of_the_nodes() -> None:
    (widget,) = [widget for widget in body()["widgets"] if widget["type"] == "alarm"]
    assert len(widget["properties"]["alarms"]) == len(alarms()) == 4


def test_picture_in_the_docs_is_drawn_from_the_template() -> None:
    picture = tostring(drawn(cluster_template(nodes=len(NODES)).resources()), encoding="unicode")
    assert PICTURE.read_text() == f"{picture}\n", "run python -m tools.dashboard"


def test_alarm_is_raised_although_the_last_samples_are_not_printed_yet() -> None:
    """A sample is printed at most this long after its minute, so that later periods have no data."""
    late = 60 * (facts()["metrics"]["minutes_before_run"] + facts()["metrics"]["minutes_between_runs"])
    for name, alarm in alarms().items():
        further = alarm["EvaluationPeriods"] - alarm["DatapointsToAlarm"]
        assert further * alarm["Period"] >= late, name
        assert alarm["TreatMissingData"] == "notBreaching"


@pytest.mark.parametrize(
    ("metric", "statistic", "comparison", "threshold", "minutes"),
    [
        ("ExecutionErrors", "Sum", "GreaterThanOrEqualToThreshold", 1, 5),
        ("UncorrectedMemoryErrors", "Sum", "GreaterThanOrEqualToThreshold", 1, 5),
        ("JobCoreUtilization", "Average", "LessThanThreshold", 5, 30),
        ("SilentNodes", "Maximum", "GreaterThanOrEqualToThreshold", 1, 10),
    ],
)
def test_alarms_are_on_errors_idle_jobs_and_silent_nodes(
    metric: str, statistic: str, comparison: str, threshold: int, minutes: int
) -> None:
    alarm = alarms()[metric]
    found = (alarm["Statistic"], alarm["ComparisonOperator"], alarm["Threshold"])
    assert found == (statistic, comparison, threshold)
    assert alarm["Period"] * alarm["DatapointsToAlarm"] == 60 * minutes
    assert "Dimensions" not in alarm


def test_alarms_notify_the_topic_of_the_pilot() -> None:
    assert not [alarm for alarm in alarms().values() if "AlarmActions" in alarm]
    topic = cluster_template(ends="5d").logical_id("AWS::SNS::Topic")
    assert [alarm["AlarmActions"] for alarm in alarms(ends="5d").values()] == [[{"Ref": topic}]] * 4


def test_without_metrics_there_is_neither_dashboard_nor_alarm() -> None:
    template = cluster_template(cloudwatch_metrics="none")
    assert not template.resources(DASHBOARD)
    assert not template.resources(ALARM)


OF_FLEETS = {
    "metric_core_utilization": ("CoreUtilization", "Average"),
    "metric_memory_utilization": ("MemoryUtilization", "Average"),
    "metric_execution_errors": ("ExecutionErrors", "Sum"),
    "metric_uncorrected_memory_errors": ("UncorrectedMemoryErrors", "Sum"),
    "metric_job_core_utilization": ("JobCoreUtilization", "Average"),
    "metric_silent_nodes": ("SilentNodes", "Maximum"),
}


@pytest.mark.parametrize("method", OF_FLEETS)
def test_fleet_has_a_method_for_each_metric(method: str) -> None:
    fleet = NeuronFleet.from_neuron_fleet_attributes(Stack(), "Fleet", cluster_name="web-train")
    metric = getattr(fleet, method)(period=Duration.minutes(1))
    assert (metric.metric_name, metric.statistic) == OF_FLEETS[method]
    assert (metric.namespace, metric.period.to_seconds()) == ("TrainiumCdk/web-train", 60)


def test_every_metric_has_a_method() -> None:
    assert {name for name, _ in OF_FLEETS.values()} == {*NODE_METRICS, *CLUSTER_METRICS}
