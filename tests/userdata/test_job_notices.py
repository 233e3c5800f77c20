"""Notices that a node will be interrupted, and SIGTERM to the wrapper of a job. Wrappers run for real."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.job_nodes import JobNodes
from tests.userdata.node_files import BUCKET, JOB

ENDLESS = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(1)\n"
HANDLES = """
import os, signal, sys, time
def save(*_):
    os.write(1, b"saved\\n")  # the signal may come while Python writes `ready` to the same buffer
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
print("ready", os.getpid(), flush=True)
while True: time.sleep(1)
"""


def test_notice_of_another_node_reaches_the_script_and_ends_the_job(nodes: JobNodes) -> None:
    nodes.start(HANDLES)
    nodes.await_(lambda: "ready" in nodes.log())
    nodes.put("attempts/1/notice.json", {"node": 1, "kind": "spot", "reason": "EC2 takes it back", "at": ""})
    nodes.wait()
    assert "saved\n" in nodes.log()
    assert (nodes.end["result"], nodes.end["reason"]) == ("interrupted", "EC2 takes it back, at any moment")


def spot_notice(file: Path) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 120))
    file.write_text(json.dumps({"kind": "spot", "reason": "EC2 takes it back", "at": at, "seconds_left": 120}))


def test_notice_of_this_node_is_published_and_ends_the_job(nodes: JobNodes, tmp_path: Path) -> None:
    notice = tmp_path / "notice.json"
    nodes.start(HANDLES, notice_file=str(notice))
    nodes.await_(lambda: "ready" in nodes.log())
    spot_notice(notice)
    nodes.await_(lambda: f"{BUCKET}/jobs/{JOB}/attempts/1/notice.json" in nodes.aws.records)
    os.kill(int(nodes.log().split("ready ")[1].split()[0]), signal.SIGUSR1)  # as the watch does
    nodes.wait()
    assert nodes.content("attempts/1/notice.json")["node"] == 0
    assert nodes.end["result"] == "interrupted"


@pytest.mark.parametrize("is_own", [True, False], ids=["own notice", "notice to another node"])
def test_job_that_handles_no_notice_and_finishes_its_work_succeeds(
    nodes: JobNodes, tmp_path: Path, is_own: bool
) -> None:
    notice = tmp_path / "notice.json"
    nodes.start("import time; print('ready', flush=True); time.sleep(1)", notice_file=str(notice))
    nodes.await_(lambda: "ready" in nodes.log())
    if is_own:
        spot_notice(notice)
    else:
        nodes.put("attempts/1/notice.json", {"node": 1, "kind": "spot", "reason": "EC2 takes it back", "at": ""})
    assert nodes.wait() == [0]
    assert nodes.end["result"] == "succeeded"


def test_sigterm_after_a_notice_interrupts_the_job(nodes: JobNodes) -> None:
    nodes.start(ENDLESS)
    nodes.await_(lambda: "ready" in nodes.log())
    nodes.put("attempts/1/notice.json", {"node": 0, "kind": "spot", "reason": "EC2 takes it back", "at": ""})
    nodes.processes[0].send_signal(signal.SIGTERM)
    assert nodes.wait() == [1]
    assert nodes.end["result"] == "interrupted"


def test_notice_for_next_week_interrupts_nothing(nodes: JobNodes, tmp_path: Path) -> None:
    notice = tmp_path / "notice.json"
    notice.write_text(json.dumps({"kind": "maintenance", "reason": "EC2 reboots it", "at": "2099-01-01T00:00:00Z"}))
    nodes.start("print('done')", notice_file=str(notice))
    assert nodes.wait() == [0]


def test_wrapper_that_gets_sigterm_reports_the_node_as_lost(nodes: JobNodes) -> None:
    nodes.start(ENDLESS)
    nodes.await_(lambda: "ready" in nodes.log())
    nodes.processes[0].send_signal(signal.SIGTERM)
    assert nodes.wait() == [1]
    assert nodes.end["result"] == "node-lost"


@pytest.mark.parametrize("key", ["setup", "command"])
def test_node_that_shuts_down_is_lost_even_if_the_processes_of_the_job_end_first(nodes: JobNodes, key: str) -> None:
    texts: dict[str, Any] = {"setup": "true", "command": "true", key: "echo ready; sleep 600"}
    nodes.start("", **texts)
    nodes.await_(lambda: "ready\n" in nodes.log())
    wrapper = nodes.processes[0].pid
    for child in Path(f"/proc/{wrapper}/task/{wrapper}/children").read_text().split():
        os.killpg(int(child), signal.SIGTERM)
    time.sleep(0.1)
    os.kill(wrapper, signal.SIGTERM)
    assert nodes.wait() == [1]
    assert nodes.end["result"] == "node-lost"


SAVES_AT_SIGTERM = """
import os, pathlib, signal, sys, time
folder, rank = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"]), int(os.environ["TRN_NODE_RANK"])
def save(*_):
    time.sleep(rank)
    new = folder / ".final"
    new.mkdir()
    (new / f"shard-{rank}").write_text("state")
    new.rename(folder / "final")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True: time.sleep(1)
"""


def test_checkpoint_that_is_saved_at_sigterm_is_completed(nodes: JobNodes) -> None:
    nodes.start(SAVES_AT_SIGTERM, nodes=2, timing={"peers": 15, "grace": 10}, command=f"exec {sys.executable} train.py")
    nodes.await_(lambda: all("ready" in nodes.log(rank) for rank in (0, 1)))
    for process in nodes.processes:
        process.send_signal(signal.SIGTERM)
    assert nodes.wait() == [1, 1]
    assert len(nodes.content("checkpoints/final.json")["parts"]) == 2
