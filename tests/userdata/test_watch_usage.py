"""The usage record of a node, and when idle time begins."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import BUCKET
from tests.userdata.watch_node import FIRST, JobNode
from trainium_userdata.node.trn_node import files
from trainium_userdata.node.trn_node.usage import SECONDS, SEND_SECONDS
from trainium_userdata.node.trn_node.watch import TICK


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> JobNode:
    return JobNode(tmp_path, aws, monkeypatch)


def written(node: JobNode) -> dict[str, Any]:
    return json.loads(node.aws.records.get(f"{BUCKET}/usage/{INSTANCE_ID}.json", "{}"))


def open_device(node: JobNode, process: int, name: str, device: str = "/dev/neuron3") -> Path:
    folder = node.root / f"proc/{process}"
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "fd/9").symlink_to(device)
    return folder


def test_node_without_job_and_open_device_counts_idle_time(node: JobNode) -> None:
    open_device(node, 7, "bash", device="/dev/null")
    node.pass_time()
    assert (written(node)["state"], written(node)["idle_seconds"]) == ("idle", 0)
    node.pass_time(SEND_SECONDS + SECONDS)
    assert written(node)["idle_seconds"] == SEND_SECONDS


def test_process_with_an_open_device_is_use_and_ends_idle_time(node: JobNode) -> None:
    node.pass_time(10 * SECONDS)
    process = open_device(node, 4711, "python3")
    node.pass_time(SECONDS)
    assert (written(node)["state"], written(node)["detail"]) == ("in-use", "python3 (4711)")
    (process / "fd/9").unlink()
    node.pass_time(SECONDS)
    assert (written(node)["state"], written(node)["idle_seconds"]) == ("idle", 0)


def test_monitoring_programs_are_not_use(node: JobNode) -> None:
    open_device(node, 9, "neuron-monitor")
    node.pass_time()
    assert written(node)["state"] == "idle"


def test_use_is_unknown_without_the_driver(node: JobNode) -> None:
    for folder in [*files.path("sys/devices/virtual/neuron_device").iterdir()]:
        folder.rename(node.root / folder.name)
    node.pass_time()
    assert (written(node)["state"], "no Neuron device" in written(node)["detail"]) == ("unknown", True)


def test_job_is_use_from_its_discovery_until_its_end(node: JobNode) -> None:
    node.membership(FIRST)
    node.pass_time(SECONDS)
    node.submit()
    node.pass_time()
    assert (written(node)["state"], written(node)["detail"].startswith("train-")) == ("in-use", True)
    node.unit("inactive")
    node.put("end.json", {"result": "succeeded"})
    node.pass_time(4 * TICK)
    assert written(node)["state"] == "idle"


def test_clock_set_forward_counts_as_two_polls_at_most(node: JobNode) -> None:
    node.pass_time()
    node.now += 7200
    node.pass_time(SEND_SECONDS + SECONDS)
    assert written(node)["idle_seconds"] <= 2 * SECONDS + SEND_SECONDS
