"""Notices that a node will be interrupted, and SIGTERM to the wrapper of a job. Wrappers run for real."""

import json
import signal
import time
from pathlib import Path

from tests.userdata.job_nodes import JobNodes

ENDLESS = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(1)\n"
HANDLES = """
import os, signal, sys, time
def save(*_):
    os.write(1, b"saved\\n")  # the signal may come while Python writes `ready` to the same buffer
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
while True: time.sleep(1)
"""


def test_notice_of_another_node_reaches_the_script_and_ends_the_job(nodes: JobNodes) -> None:
    nodes.start(HANDLES)
    nodes.await_(lambda: "ready" in nodes.log())
    nodes.put("attempts/1/notice.json", {"node": 1, "kind": "spot", "reason": "EC2 takes it back", "at": ""})
    nodes.wait()
    assert "saved\n" in nodes.log()
    assert (nodes.end["result"], nodes.end["reason"]) == ("interrupted", "EC2 takes it back, at any moment")


def test_notice_of_this_node_is_published_and_ends_the_job(nodes: JobNodes, tmp_path: Path) -> None:
    notice = tmp_path / "notice.json"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 120))
    notice.write_text(json.dumps({"kind": "spot", "reason": "EC2 takes it back", "at": at, "seconds_left": 120}))
    nodes.start("print('saved')", notice_file=str(notice))
    nodes.wait()
    assert nodes.content("attempts/1/notice.json")["node"] == 0
    assert nodes.end["result"] == "interrupted"


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
