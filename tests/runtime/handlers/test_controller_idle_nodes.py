"""The controller stops unused nodes."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.runtime.handlers.conftest import Inbox, Look, Run
from tests.runtime.handlers.fleet import BUCKET, GROUP, NOON, Fleet, client, desired, set_size, topic_tags
from trainium_runtime.naming import STOPPED_TAG
from trainium_wire.keys import USAGE_PREFIX

IDLE = {"IDLE_MINUTES": "60"}


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
    (group,) = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    for instance in group["Instances"]:
        key = f"{USAGE_PREFIX}/AROAEXAMPLEEXAMPLE0:{instance['InstanceId']}.json"
        client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(written))


def test_unused_nodes_stop_after_one_notice_and_can_be_restarted(run: Look, inbox: Inbox) -> None:
    for minutes in (40, 50, 55, 60, 65):
        write_usage(minutes, at=2)
        run(2, **IDLE)
    first, second = inbox()
    assert first["Subject"] == "trn-pilot is idle"
    assert "no NeuronCore has been in use" in first["Message"]
    assert second["Subject"] == "trn-pilot nodes stopped"
    assert "trn wake" in second["Message"]
    assert (desired(), topic_tags()[STOPPED_TAG]) == (0, "idle 2026-11-21T13:00Z")
    set_size(2)
    run(3, **IDLE)
    assert (desired(), STOPPED_TAG in topic_tags()) == (2, False)


def start_job() -> None:
    client("s3").put_object(Bucket=BUCKET, Key="job.json", Body='{"id": "j-1"}')


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        partial(write_usage, 600, at=1),
        partial(write_usage, 600, at=12, state="in-use"),
        lambda: (write_usage(600, at=12), start_job()),
    ],
    ids=["no report", "old report", "in use", "job has not ended"],
)
def test_used_nodes_and_nodes_of_unknown_use_keep_running(run: Look, make: Callable[[], Any]) -> None:
    make()
    run(12, **IDLE)
    assert desired() == 2


def test_nodes_of_unreadable_use_stop_at_the_end(run: Look) -> None:
    client("s3").put_object(Bucket=BUCKET, Key="job.json", Body="[]")
    with pytest.RaisesGroup(ValueError):
        run(100, ENDS="100h", **IDLE)
    assert desired() == 0


def test_deployment_keeps_idle_nodes(deploy_pilot: Run, fleet: Fleet) -> None:
    write_usage(600, at=0)
    deploy_pilot(**IDLE)
    assert fleet.sizes == []
    assert desired() == 2
