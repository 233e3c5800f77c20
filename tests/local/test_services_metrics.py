"""CloudWatch Logs of the embedded AWS extracts metrics from the log lines of a function."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.test_services_lambda import creator, invoke

BODY = "def handler(event, context):\n    print(event['line'])\n"
NAMESPACE = "Extracted"
AT = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=7)


@pytest.fixture(scope="module")
def function(embedded_aws: EmbeddedAws) -> str:
    return creator(embedded_aws)(BODY)


def document(**members: Any) -> dict[str, Any]:
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [["InstanceId"]],
        "Metrics": [{"Name": "Busy", "Unit": "Percent"}],
    }
    metadata = {"Timestamp": round(1000 * AT.timestamp()), "CloudWatchMetrics": [directive]}
    return {"_aws": metadata, "InstanceId": "i-1", "Busy": 40, **members}


def points(aws: EmbeddedAws, name: str, instance: str) -> list[Any]:
    found = aws.client("cloudwatch").get_metric_statistics(
        Namespace=NAMESPACE,
        MetricName=name,
        Dimensions=[{"Name": "InstanceId", "Value": instance}],
        StartTime=AT,
        EndTime=AT + timedelta(minutes=1),
        Period=60,
        Statistics=["Average", "SampleCount"],
    )
    return [(point["Timestamp"], point["Average"], point["SampleCount"]) for point in found["Datapoints"]]


def test_line_becomes_a_metric_with_the_time_and_dimension_of_the_line(
    embedded_aws: EmbeddedAws, function: str
) -> None:
    for value in (40, 60):
        invoke(embedded_aws, function, {"line": json.dumps(document(Busy=value))})
    assert points(embedded_aws, "Busy", "i-1") == [(AT, 50, 2)]


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(document(_aws={"CloudWatchMetrics": []}, InstanceId="i-2")),
        json.dumps({**document(InstanceId="i-2"), "Busy": "much"}),
        json.dumps({name: value for name, value in document(InstanceId="i-2").items() if name != "Busy"}),
        "{" + json.dumps(document(InstanceId="i-2")),
    ],
    ids=["no time", "no number", "no value", "no JSON"],
)
def test_line_that_is_not_valid_is_only_logged(embedded_aws: EmbeddedAws, function: str, line: str) -> None:
    assert invoke(embedded_aws, function, {"line": line}) == (None, None)
    assert points(embedded_aws, "Busy", "i-2") == []
