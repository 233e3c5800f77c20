"""A pilot's clock stops unused nodes."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import PartialClient
from tests.runtime.handlers.fleet import BUCKET, GROUP, NOON, client
from tests.runtime.handlers.pilot import Reconciler, Stack
from tests.runtime.handlers.pilot_clock_runs import Run, desired, group, messages, new_queue, new_topic, runs, tags
from trainium_runtime.handlers.pilot_clock import GATE_EVENT
from trainium_runtime.naming import STOPPED_TAG
from trainium_wire.keys import USAGE_PREFIX


@pytest.fixture
def queue() -> str:
    return new_queue()


@pytest.fixture
def run(queue: str) -> Run:  # noqa: ARG001
    return runs(Stack(), new_topic(), Reconciler())


def write_usage(minutes_idle: float, *, at: float, state: str = "idle") -> None:
    """Write the usage report of every node.

    Args:
        minutes_idle: How long the nodes have been idle.
        at: When the reports were written, in hours after noon.
    """
    written = {
        "state": state,
        "at": (NOON + timedelta(hours=at)).isoformat(),
        "idle_seconds": 60 * minutes_idle,
        "detail": "python (7)",
    }
    for instance in group()["Instances"]:
        client("s3").put_object(
            Bucket=BUCKET,
            Key=f"{USAGE_PREFIX}/AROAEXAMPLEEXAMPLE0:{instance['InstanceId']}.json",
            Body=json.dumps(written),
        )


IDLE = {"IDLE_MINUTES": "60", "RECORDS_BUCKET": BUCKET}


def test_unused_nodes_stop_after_one_notice_and_can_be_restarted(run: Run, queue: str) -> None:
    for minutes in (40, 50, 55, 60, 65):
        write_usage(minutes, at=2)
        run(2, **IDLE)
    first, second = messages(queue)
    assert first["Subject"] == "trn-pilot is idle"
    assert "no NeuronCore has been in use" in first["Message"]
    assert second["Subject"] == "trn-pilot nodes stopped"
    assert "trn wake" in second["Message"]
    assert (desired(), tags()[STOPPED_TAG]) == (0, "idle since 2026-11-21T13:00Z")
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=2)
    run(3, **IDLE)
    assert (desired(), STOPPED_TAG in tags()) == (2, False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: write_usage(600, at=1),
        lambda: write_usage(600, at=12, state="in-use"),
        lambda: (write_usage(600, at=12), client("s3").put_object(Bucket=BUCKET, Key="job.json", Body='{"id": "j-1"}')),
    ],
    ids=["no report", "old report", "in use", "job has not ended"],
)
def test_used_nodes_and_nodes_of_unknown_use_keep_running(run: Run, make: Callable[[], Any]) -> None:
    make()
    run(12, **IDLE)
    assert desired() == 2


def test_nodes_of_unreadable_use_stop_at_the_end(run: Run) -> None:
    denied = PartialClient(client("s3"), get_object=ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject"))
    with pytest.raises(ExceptionGroup):
        run(100, ENDS="100h", clients={"s3": denied}, **IDLE)
    assert desired() == 0


def test_gate_keeps_idle_nodes(run: Run) -> None:
    write_usage(600, at=12)
    assert run(12, GATE_EVENT, **IDLE).nodes == 2
    assert desired() == 2
