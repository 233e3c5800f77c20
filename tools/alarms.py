"""Metrics of a cluster in the embedded AWS, and the alarms that they raise, which it does not evaluate."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainium_runtime.naming import METRICS_EVENT
from trainium_runtime.node_metrics import Window
from trainium_wire.formats import time_text
from trainium_wire.keys import USAGE_PREFIX
from trainium_wire.metric_sample import MAX_SAMPLES, MetricSample
from trainium_wire.usage import NodeUsage

RUNS = 9
"""The runs of the controller in `print_metrics`. The alarm about idle jobs looks at as many periods."""
INSTANCE_ID = "i-0123456789abcdef0"
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "LessThanThreshold": lambda value, limit: value < limit,
    "GreaterThanOrEqualToThreshold": lambda value, limit: value >= limit,
}


def raised(cloudwatch: Any, namespace: str, at: datetime) -> set[str]:
    """The metrics of a namespace whose alarm is raised: enough of the periods that it evaluates are beyond its
    threshold.

    Args:
        cloudwatch: The client of boto3.
        at: The end of the last period.
    """
    found = set[str]()
    for alarm in cloudwatch.describe_alarms()["MetricAlarms"]:
        if alarm.get("Namespace") == namespace:
            start = at - timedelta(seconds=alarm["Period"] * alarm["EvaluationPeriods"])
            values = statistics(cloudwatch, alarm, start, at)
            beyond = [value for value in values if COMPARISONS[alarm["ComparisonOperator"]](value, alarm["Threshold"])]
            if len(beyond) >= alarm["DatapointsToAlarm"]:
                found.add(alarm["MetricName"])
    return found


def statistics(cloudwatch: Any, alarm: Any, start: datetime, end: datetime) -> list[float]:
    """The values of the metric of an alarm, one for each of its periods with data."""
    answer = cloudwatch.get_metric_statistics(
        Namespace=alarm["Namespace"],
        MetricName=alarm["MetricName"],
        StartTime=start,
        EndTime=end,
        Period=alarm["Period"],
        Statistics=[alarm["Statistic"]],
    )
    return [point[alarm["Statistic"]] for point in answer["Datapoints"]]


def print_metrics(
    client: Callable[[str], Any], *, bucket: str, controller: str, sample: MetricSample, until: datetime
) -> None:
    """Invoke the controller as its schedule does, with the reports of a node that takes the same sample each minute.

    Args:
        client: Returns the client of a service.
        bucket: The bucket of the node records.
        controller: Name of the function.
        until: The time of the last run.
    """
    for number in reversed(range(RUNS)):
        run = until - timedelta(minutes=5 * number)
        minutes = [Window.before(run).end - timedelta(minutes=ago) for ago in reversed(range(MAX_SAMPLES))]
        usage = NodeUsage("in-use", run, samples=tuple(replace(sample, at=at) for at in minutes))
        client("s3").put_object(Bucket=bucket, Key=f"{USAGE_PREFIX}/{INSTANCE_ID}.json", Body=usage.to_json())
        run_controller(client, controller, run)


def run_controller(client: Callable[[str], Any], controller: str, run: datetime) -> None:
    """Let the controller print the metrics of its run at this time."""
    answer = client("lambda").invoke(FunctionName=controller, Payload=json.dumps({METRICS_EVENT: time_text(run)}))
    assert "FunctionError" not in answer, answer["Payload"].read()
