"""Samples of an idle job, a busy job and failing devices become metrics, and raise the alarms of a deployed cluster."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, outputs
from tests.deploy.permitted import execution_policies
from tools.alarms import RUNS, print_metrics, raised, statistics
from trainium_core.naming import RECORDS_OUTPUT
from trainium_local.server import Settings
from trainium_runtime.node_metrics import Window
from trainium_wire.metric_sample import MetricSample

NAMESPACE = "TrainiumCdk/trn-pilot"
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
    cluster = account.cluster()
    (controller,) = [name for name in cluster.ids("AWS::Lambda::Function") if "Controller" in name]
    bucket = outputs(cluster)[RECORDS_OUTPUT]
    for name, end in ends.items():
        sample = SCENARIOS[name][0]
        print_metrics(account.aws.client, bucket=bucket, controller=controller, sample=sample, until=end)
    return ends


@pytest.mark.parametrize("name", SCENARIOS)
def test_samples_raise_the_alarms_that_they_should(account: Account, scenarios: dict[str, datetime], name: str) -> None:
    assert raised(account.aws.client("cloudwatch"), NAMESPACE, scenarios[name]) == SCENARIOS[name][1]


def test_each_sample_is_counted_once(account: Account, scenarios: dict[str, datetime]) -> None:
    start = Window.before(scenarios["failing devices"]).end - timedelta(minutes=5 * RUNS - 1)
    counted = {"Namespace": NAMESPACE, "MetricName": "ExecutionErrors", "Period": 300, "Statistic": "Sum"}
    values = statistics(account.aws.client("cloudwatch"), counted, start, start + timedelta(minutes=5 * RUNS))
    assert (len(values), sum(values)) == (RUNS, 2 * 5 * RUNS)


def test_dashboard_is_deployed(account: Account) -> None:
    (name,) = account.cluster().ids("AWS::CloudWatch::Dashboard")
    body = json.loads(account.aws.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"])
    alarms = {alarm["AlarmArn"] for alarm in account.aws.client("cloudwatch").describe_alarms()["MetricAlarms"]}
    assert {*body["widgets"][0]["properties"]["alarms"]} <= alarms
