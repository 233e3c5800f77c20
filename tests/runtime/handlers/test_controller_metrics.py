"""The controller prints the metrics of the nodes when its schedule says so."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.runtime.handlers.conftest import SETTINGS
from tests.runtime.handlers.fleet import BUCKET, Clock, Context, Fleet, client
from trainium_runtime.handlers import controller
from trainium_runtime.node_metrics import Window
from trainium_wire.formats import time_text
from trainium_wire.keys import USAGE_PREFIX
from trainium_wire.metric_sample import MetricSample
from trainium_wire.usage import NodeUsage

Run = Callable[[datetime], list[dict[str, Any]]]


def now() -> datetime:
    """The present time, at which moto stores objects."""
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def run(
    clients: dict[str, Any],  # noqa: ARG001
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs the function at a scheduled time, and returns the lines that it prints."""
    for name, value in {**SETTINGS, "METRICS": "nodes"}.items():
        monkeypatch.setenv(name, value)

    def scheduled(at: datetime) -> list[dict[str, Any]]:
        controller.handle({"metrics": time_text(at)}, Context(clock))
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return scheduled


def report(instance: str, *samples: MetricSample) -> None:
    key = f"{USAGE_PREFIX}/AROAEXAMPLEEXAMPLE0:{instance}.json"
    client("s3").put_object(Bucket=BUCKET, Key=key, Body=NodeUsage("in-use", now(), samples=samples).to_json())


def test_samples_of_the_run_are_printed_also_of_a_node_that_is_gone(fleet: Fleet, run: Run) -> None:
    at = now()
    window = Window.before(at)
    failing, busy = fleet.instances
    report(failing, MetricSample(window.end, "j-1", 0.0, ecc_uncorrected=2))
    report(busy, MetricSample(window.start, "j-1", 99.0), MetricSample(window.end, "j-1", 50.0))
    fleet.replace(failing)
    lines = {line["InstanceId"]: line for line in run(at)}
    assert lines.keys() == {failing, busy}
    assert lines[failing]["UncorrectedMemoryErrors"] == 2
    assert lines[busy]["CoreUtilization"] == 50
    assert lines[busy]["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "TrainiumCdk/trn-pilot"


def test_verified_node_without_a_report_is_silent(fleet: Fleet, run: Run) -> None:
    fleet.verify(*fleet.instances)
    (line,) = run(now() + timedelta(minutes=12))
    assert (line["SilentNodes"], line["silent"]) == (2, sorted(fleet.instances))


def test_old_reports_of_instances_that_are_gone_are_not_read(run: Run) -> None:
    later = now() + timedelta(minutes=30)
    report("i-0123456789abcdef0", MetricSample(Window.before(later).end, "", 50.0))
    assert run(later) == []


def test_run_changes_nothing(fleet: Fleet, run: Run) -> None:
    fleet.fail(fleet.instances[0], "no driver")
    run(now())
    assert (fleet.sizes, fleet.unhealthy) == ([], set())


def test_scheduled_time_that_is_not_one_is_an_error(run: Run, clock: Clock) -> None:  # noqa: ARG001
    with pytest.raises(ValueError, match=r"aws\.scheduler"):
        controller.handle({"metrics": "<aws.scheduler.scheduled-time>"}, Context(clock))
