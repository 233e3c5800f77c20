"""Samples of an idle job, a busy job and failing devices become metrics, and raise the alarms of a deployed cluster."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, outputs
from tests.deploy.permitted import execution_policies
from trainium_core.naming import RECORDS_OUTPUT
from trainium_local.server import Settings
from trainium_runtime.node_metrics import Window
from trainium_wire.formats import time_text
from trainium_wire.keys import USAGE_PREFIX
from trainium_wire.metric_sample import MAX_SAMPLES, MetricSample
from trainium_wire.usage import NodeUsage

NAMESPACE = "TrainiumCdk/trn-pilot"
RUNS = 9
"""The runs of the controller in a scenario. The alarm about idle jobs looks at as many periods."""
IDLE = MetricSample(datetime.now(UTC), "train-1", 1.0, 40.0, execution_errors=0, ecc_uncorrected=0)
BUSY = replace(IDLE, core_utilization=90.0)
FAILING = replace(BUSY, execution_errors=2, ecc_uncorrected=1)
SCENARIOS: dict[str, tuple[MetricSample, set[str]]] = {
    "idle job": (IDLE, {"JobCoreUtilization"}),
    "busy job": (BUSY, set()),
    "failing devices": (FAILING, {"ExecutionErrors", "UncorrectedMemoryErrors"}),
    "no job": (replace(IDLE, job=""), set()),
}
"""The sample of each minute, and the metrics whose alarms it raises."""
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "LessThanThreshold": lambda value, limit: value < limit,
    "GreaterThanOrEqualToThreshold": lambda value, limit: value >= limit,
}


@pytest.fixture(scope="module")
def account(start_account: Callable[..., Account]) -> Account:
    """An account with a cluster whose metrics have no dimension: moto's statistics do not tell dimensions apart."""
    account = start_account(Settings(iam="enforced"), execution_policies)
    account.deploy(cluster_template(nodes=1, cloudwatch_metrics="cluster"))
    return account


@pytest.fixture(scope="module")
def scenarios(account: Account) -> dict[str, datetime]:
    """The end of each scenario, whose metrics the controller has printed."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    ends = {name: now - timedelta(hours=3 * number) for number, name in enumerate(SCENARIOS)}
    for name, end in ends.items():
        print_metrics(account, SCENARIOS[name][0], end)
    return ends


def print_metrics(account: Account, sample: MetricSample, until: datetime) -> None:
    """Invoke the controller as its schedule does, with the reports of a node that takes the same sample each minute."""
    cluster = account.cluster()
    (controller,) = [name for name in cluster.ids("AWS::Lambda::Function") if "Controller" in name]
    for number in reversed(range(RUNS)):
        run = until - timedelta(minutes=5 * number)
        minutes = [Window.before(run).end - timedelta(minutes=ago) for ago in reversed(range(MAX_SAMPLES))]
        usage = NodeUsage("in-use", run, samples=tuple(replace(sample, at=at) for at in minutes))
        key = f"{USAGE_PREFIX}/i-0123456789abcdef0.json"
        account.aws.client("s3").put_object(Bucket=outputs(cluster)[RECORDS_OUTPUT], Key=key, Body=usage.to_json())
        event = json.dumps({"metrics": time_text(run)})
        answer = account.aws.client("lambda").invoke(FunctionName=controller, Payload=event)
        assert "FunctionError" not in answer, answer["Payload"].read()


def raised(account: Account, at: datetime) -> set[str]:
    """The metrics whose alarm is raised: enough of the periods that it evaluates are beyond its threshold."""
    cloudwatch, found = account.aws.client("cloudwatch"), set[str]()
    for alarm in cloudwatch.describe_alarms()["MetricAlarms"]:
        if alarm.get("Namespace") == NAMESPACE:
            start = at - timedelta(seconds=alarm["Period"] * alarm["EvaluationPeriods"])
            values = statistics(account, alarm, start, at)
            beyond = [value for value in values if COMPARISONS[alarm["ComparisonOperator"]](value, alarm["Threshold"])]
            if len(beyond) >= alarm["DatapointsToAlarm"]:
                found.add(alarm["MetricName"])
    return found


def statistics(account: Account, alarm: Any, start: datetime, end: datetime) -> list[float]:
    answer = account.aws.client("cloudwatch").get_metric_statistics(
        Namespace=alarm["Namespace"],
        MetricName=alarm["MetricName"],
        StartTime=start,
        EndTime=end,
        Period=alarm["Period"],
        Statistics=[alarm["Statistic"]],
    )
    return [point[alarm["Statistic"]] for point in answer["Datapoints"]]


@pytest.mark.parametrize("name", SCENARIOS)
def test_samples_raise_the_alarms_that_they_should(account: Account, scenarios: dict[str, datetime], name: str) -> None:
    assert raised(account, scenarios[name]) == SCENARIOS[name][1]


def test_each_sample_is_counted_once(account: Account, scenarios: dict[str, datetime]) -> None:
    start = Window.before(scenarios["failing devices"]).end - timedelta(minutes=5 * RUNS - 1)
    counted = {"Namespace": NAMESPACE, "MetricName": "ExecutionErrors", "Period": 300, "Statistic": "Sum"}
    values = statistics(account, counted, start, start + timedelta(minutes=5 * RUNS))
    assert (len(values), sum(values)) == (RUNS, 2 * 5 * RUNS)


def test_dashboard_is_deployed(account: Account) -> None:
    (name,) = account.cluster().ids("AWS::CloudWatch::Dashboard")
    body = json.loads(account.aws.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"])
    alarms = {alarm["AlarmArn"] for alarm in account.aws.client("cloudwatch").describe_alarms()["MetricAlarms"]}
    assert {*body["widgets"][0]["properties"]["alarms"]} <= alarms
