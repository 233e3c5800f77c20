"""The lines from which CloudWatch Logs extracts the metrics of the nodes."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from itertools import chain
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.runtime.snapshots import NOON, stored
from trainium_runtime.facts import facts
from trainium_runtime.node_metrics import MetricLines, Window
from trainium_wire.metric_sample import MAX_SAMPLES, MetricSample
from trainium_wire.usage import NodeUsage

Json = Mapping[str, Any]

PUBLISHED = json.loads((files("trainium_local.services") / "embedded_metric_format.json").read_text())
WINDOW = Window.before(NOON)
NAMESPACE = "TrainiumCdk/trn-pilot"
BUSY = MetricSample(WINDOW.end, "j-1", 50.0, 25.0, execution_errors=0, ecc_uncorrected=1)


def usage(*samples: MetricSample, at: datetime = NOON) -> NodeUsage:
    return NodeUsage("in-use", at, samples=samples)


def lines(usages: Mapping[str, NodeUsage], *, by_node: bool = True, verified: datetime | None = None) -> list[Json]:
    records = {instance: stored(instance, "verified", at=verified or WINDOW.start) for instance in usages}
    return list(MetricLines(cluster="trn-pilot", by_node=by_node).lines(WINDOW, usages, records))


def metrics(line: Json) -> dict[tuple[str, ...], set[str]]:
    """The names of the metrics of a line by their dimensions."""
    found: dict[tuple[str, ...], set[str]] = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        assert directive["Namespace"] == NAMESPACE
        for dimensions in directive["Dimensions"]:
            found.setdefault(tuple(dimensions), set()).update(metric["Name"] for metric in directive["Metrics"])
    return found


def silent(found: list[Json]) -> int:
    (count,) = [line["SilentNodes"] for line in found if "SilentNodes" in line]
    return count


@pytest.mark.parametrize("by_node", [True, False])
def test_lines_match_the_published_schema_and_have_every_named_member(by_node: bool) -> None:
    found = lines({"i-1": usage(BUSY), "i-2": usage()}, by_node=by_node)
    assert len(found) == 2
    for line in found:
        Draft202012Validator(PUBLISHED).validate(line)
        assert {*chain.from_iterable(metrics(line)), *chain.from_iterable(metrics(line).values())} <= line.keys()


def test_sample_is_a_line_with_its_own_time_and_the_cloudwatch_units() -> None:
    line, _ = lines({"i-1": usage(BUSY)})
    assert line["_aws"]["Timestamp"] == WINDOW.end.timestamp() * 1000
    assert (line["InstanceId"], line["job"], line["CoreUtilization"]) == ("i-1", "j-1", 50)
    units = {metric["Name"]: metric["Unit"] for part in line["_aws"]["CloudWatchMetrics"] for metric in part["Metrics"]}
    assert units == {
        "CoreUtilization": "Percent",
        "MemoryUtilization": "Percent",
        "ExecutionErrors": "Count",
        "UncorrectedMemoryErrors": "Count",
        "JobCoreUtilization": "Percent",
    }


def test_nodes_have_their_own_metrics_only_if_wanted() -> None:
    of_node = {"CoreUtilization", "MemoryUtilization", "ExecutionErrors", "UncorrectedMemoryErrors"}
    assert metrics(lines({"i-1": usage(BUSY)})[0]) == {
        ("InstanceId",): of_node,
        (): {*of_node, "JobCoreUtilization"},
    }
    assert metrics(lines({"i-1": usage(BUSY)}, by_node=False)[0]) == {(): {*of_node, "JobCoreUtilization"}}


def test_unknown_values_have_no_metric() -> None:
    (about_silence,) = lines({"i-1": usage(MetricSample(WINDOW.end, "j-1"))})
    assert metrics(about_silence) == {(): {"SilentNodes"}}
    line, _ = lines({"i-1": usage(MetricSample(WINDOW.end, "j-1", memory_utilization=3.0))})
    assert metrics(line)[()] == {"MemoryUtilization"}


def test_utilization_without_a_job_is_not_that_of_a_job() -> None:
    line, _ = lines({"i-1": usage(MetricSample(WINDOW.end, "", 50.0))})
    assert metrics(line)[()] == {"CoreUtilization"}


def test_successive_runs_print_each_sample_once() -> None:
    every_second = [NOON + timedelta(seconds=second) for second in range(3600)]
    between = timedelta(minutes=facts()["metrics"]["minutes_between_runs"])
    windows = [Window.before(NOON + timedelta(minutes=10) + number * between) for number in range(20)]
    assert {sum(at in window for window in windows) for at in every_second} == {1}


def test_samples_of_a_run_are_still_in_the_last_report_of_a_node() -> None:
    longest_between_reports = timedelta(minutes=5)
    assert NOON - WINDOW.end > longest_between_reports
    assert NOON - WINDOW.start < timedelta(minutes=MAX_SAMPLES)


def test_verified_node_without_a_measured_utilization_is_silent() -> None:
    late = MetricSample(WINDOW.end + timedelta(seconds=1), "", 50.0)
    unmeasured = MetricSample(WINDOW.end, "j-1", memory_utilization=3.0, ecc_uncorrected=0)
    found = lines({"i-1": usage(BUSY), "i-2": usage(late), "i-3": usage(), "i-4": usage(unmeasured)})
    assert silent(found) == 3
    assert silent(lines({"i-1": usage(unmeasured, BUSY)})) == 0
    assert silent(lines({"i-1": usage(BUSY)})) == 0


@pytest.mark.parametrize(
    "records",
    [
        {},
        {"i-1": stored("i-1", "failed", "no driver", at=WINDOW.start)},
        {"i-1": stored("i-1", "verified", at=WINDOW.start + timedelta(seconds=1))},
    ],
    ids=["no node", "failed", "new"],
)
def test_cluster_without_nodes_that_need_a_sample_has_no_metrics(records: Any) -> None:
    assert not list(MetricLines(cluster="trn-pilot", by_node=True).lines(WINDOW, {}, records))
