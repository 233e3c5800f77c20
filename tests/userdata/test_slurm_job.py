"""A job of `trn run` in allocations of Slurm: the rendered batch script, and our programs on two nodes."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.node_files import JOB
from tests.userdata.plans import plan_for
from tests.userdata.slurm_nodes import SLURM_ID, SlurmNodes
from trainium_userdata.node.trn_node.objects import Objects
from trainium_userdata.node.trn_slurm.attempts import Attempts
from trainium_userdata.node.trn_slurm.slurm import why_ended
from trainium_wire.formats import now_text

SAVES = """import os, pathlib, sys
folder = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"])
before = os.environ.get("TRN_RESUME_FROM")
print("resumed", before and pathlib.Path(before, "state").read_text(), flush=True)
if not before:
    new = folder / ".step-1"
    new.mkdir()
    (new / "state").write_text("one")
    new.rename(folder / "step-1")
    sys.exit({code} if os.environ["TRN_NODE_RANK"] == "0" else 0)
"""
SHOWS = """import os
print(*(os.environ[name] for name in ('TRN_NODES', 'TRN_NODE_RANK', 'HEAD_NODE')))
print(open('/proc/self/status').read())
"""
WAITS = """import os, pathlib, signal, sys, time
stopped = []
signal.signal(signal.SIGUSR1, lambda *_: stopped.append(1))
print("waits", flush=True)
while not stopped:
    time.sleep(0.05)
print("noticed", flush=True)
here = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"]).parents[4]
(here / "noticed").touch()
while len(list(here.parent.glob("*/noticed"))) < 2:
    time.sleep(0.05)
"""


@pytest.fixture
def slurm(tmp_path: Path, aws: AwsStandIn) -> Iterator[SlurmNodes]:
    nodes = SlurmNodes(tmp_path, plan_for("trn1.32xlarge", nodes=2, stacks=("pcs",)), aws)
    yield nodes
    nodes.close()


def waits_on_both_nodes(slurm: SlurmNodes) -> bool:
    return all("waits" in slurm.log(rank=rank) for rank in (0, 1))


def runs_on_both_nodes(slurm: SlurmNodes) -> bool:
    return all(slurm.content(f"attempts/1/nodes/{rank}.json").get("state") == "running" for rank in (0, 1))


def test_job_succeeds_on_both_nodes(slurm: SlurmNodes) -> None:
    slurm.submit(SHOWS)
    assert slurm.run() == 0, slurm.output
    assert "NoNewPrivs:\t1" in slurm.log()
    assert (slurm.content("end.json")["result"], slurm.content("end.json")["attempts"]) == ("succeeded", 1)
    assert ["2 0 127.0.0.2" in slurm.log(rank=0), "2 1 127.0.0.2" in slurm.log(rank=1)] == [True, True]
    assert [each["instance_id"] for each in slurm.content("attempts/1/start.json")["nodes"]] == ["i-0", "i-1"]
    assert not list(slurm.folder.glob("*/var/tmp/trn-slurm-*/train-*"))


@pytest.mark.parametrize("retries", [0, 1])
def test_job_with_retries_leaves_a_node_that_ends_without_an_attempt(slurm: SlurmNodes, retries: int) -> None:
    notice = {"kind": "pilot-stop", "reason": "the Capacity Block ends", "at": ""}
    (slurm.folder / "1/run/trn").mkdir(parents=True)
    (slurm.folder / "1/run/trn/notice.json").write_text(json.dumps(notice))
    slurm.submit("pass", retries=retries)
    code = slurm.run()
    assert (code != 0, slurm.requeues) == (bool(retries), retries)
    assert bool(slurm.content("attempts/1/start.json")) != bool(retries)
    assert ("i-1: the Capacity Block ends" in slurm.output) == bool(retries)


def test_batch_script_ends_with_the_exit_code_of_the_script(slurm: SlurmNodes) -> None:
    slurm.submit("import os, sys; sys.exit(3 if os.environ['TRN_NODE_RANK'] == '1' else 0)", retries=2)
    assert (slurm.run(), slurm.requeues) == (3, 0)
    end = slurm.content("end.json")
    assert (end["result"], end["exit_code"], end["node"]) == ("failed", 3, 1)


def test_exit_code_to_retry_requeues_the_job_which_resumes(slurm: SlurmNodes) -> None:
    slurm.submit(SAVES.format(code=75), retries=1, retry_on_exit_codes=[75])
    slurm.run()
    assert (slurm.requeues, slurm.content("end.json")) == (1, {})
    assert slurm.run() == 0, slurm.output
    assert "resumed one" in slurm.log(attempt=2)
    assert (slurm.content("end.json")["result"], slurm.content("end.json")["attempts"]) == ("succeeded", 2)


def test_task_that_is_killed_loses_the_node(slurm: SlurmNodes) -> None:
    slurm.submit(WAITS, retries=1)
    slurm.start()
    slurm.await_(lambda: runs_on_both_nodes(slurm))
    os.kill(slurm.tasks[0], signal.SIGKILL)
    slurm.wait()
    assert slurm.content("attempts/1/end.json")["result"] == "node-lost"
    assert (slurm.requeues, slurm.content("end.json")) == (1, {})


@pytest.mark.parametrize(("state", "result"), [("CANCELLED", "stopped"), ("PREEMPTED", "node-lost")])
def test_end_by_slurm_is_recognised_by_its_state(slurm: SlurmNodes, state: str, result: str) -> None:
    slurm.submit(WAITS, retries=1)
    slurm.start()
    slurm.await_(lambda: runs_on_both_nodes(slurm))
    slurm.set_state(state)
    slurm.signal_all(signal.SIGTERM)
    assert slurm.wait() == 1
    assert slurm.content("attempts/1/end.json")["result"] == result
    # Slurm itself starts a job again that it has preempted.
    assert slurm.content("end.json").get("result") == (None if state == "PREEMPTED" else result)
    assert slurm.requeues == 0


def test_stopped_job_is_cancelled_in_slurm(slurm: SlurmNodes) -> None:
    slurm.submit(WAITS)
    slurm.start()
    slurm.await_(lambda: runs_on_both_nodes(slurm))
    slurm.put("stop.json", {"reason": "trn stop"})
    assert slurm.wait() == 1
    assert slurm.content("end.json")["result"] == "stopped"
    assert (slurm.folder / "scancel").read_text() == "7\n"


def test_signal_before_the_time_limit_reaches_every_node(slurm: SlurmNodes) -> None:
    slurm.submit(WAITS)
    slurm.start()
    slurm.await_(lambda: waits_on_both_nodes(slurm))
    slurm.signal_batch(signal.SIGUSR1)
    assert slurm.wait() == 1
    assert ["noticed" in slurm.log(rank=rank) for rank in (0, 1)] == [True, True]
    end = slurm.content("end.json")
    assert (end["result"], "time limit" in end["reason"]) == ("interrupted", True)


@pytest.mark.parametrize(
    ("name", "content"),
    [("stop.json", {"reason": "trn stop"}), ("end.json", {"result": "stopped", "reason": "trn stop"})],
)
def test_job_that_was_stopped_while_it_waited_is_cancelled(
    slurm: SlurmNodes, name: str, content: dict[str, str]
) -> None:
    slurm.submit("print('begun')")
    slurm.put(name, content)
    slurm.run()
    assert (slurm.content("end.json")["result"], slurm.content("attempts/1/start.json")) == ("stopped", {})
    assert (slurm.folder / "scancel").read_text() == "7\n"


def test_job_that_is_stopped_in_the_pause_before_an_attempt_is_cancelled(slurm: SlurmNodes) -> None:
    slurm.submit("print('begun')", retries=2)
    for attempt in (1, 2):
        slurm.put(f"attempts/{attempt}/start.json", {"at": now_text(), "submission": SLURM_ID, "resume_from": None})
        slurm.put(f"attempts/{attempt}/end.json", {"result": "node-lost", "at": now_text()})
    reads = []

    def stop_after_first_read(name: str) -> int:
        if name.endswith("/stop.json"):
            reads.append(name)
            if len(reads) == 2:
                slurm.put("stop.json", {"reason": "trn stop"})
        return 200

    slurm.aws.get_status = stop_after_first_read
    slurm.run()
    assert (slurm.content("end.json")["result"], slurm.content("attempts/3/start.json")) == ("stopped", {})
    assert (slurm.folder / "scancel").read_text() == "7\n"


def test_second_slurm_job_does_not_disturb_the_first(slurm: SlurmNodes) -> None:
    slurm.submit("print('begun')", retries=1)
    cut_off(slurm, at=now_text())
    slurm.slurm_id = "8"
    assert slurm.run() == 1
    assert "attempt 1 of the job was begun elsewhere: it was submitted twice to Slurm" in slurm.output
    assert slurm.content("attempts/1/end.json") == slurm.content("end.json") == {}


def attempts_in_process(slurm: SlurmNodes, monkeypatch: pytest.MonkeyPatch) -> Attempts:
    root = str(slurm.folder / "0")
    for name, value in {**slurm.aws.loopback_environment, "ROOT": root, "SLURM_JOB_ID": SLURM_ID}.items():
        monkeypatch.setenv(name, value)
    return Attempts(JOB, Objects(retries=0))


def cut_off(slurm: SlurmNodes, at: str) -> None:
    """Store the start of an attempt without an end, as after the loss of a node that ended the allocation."""
    nodes = [{"instance_id": f"i-{rank}", "address": f"127.0.0.{rank + 2}"} for rank in (0, 1)]
    slurm.put("attempts/1/start.json", {"attempt": 1, "at": at, "submission": SLURM_ID, "nodes": nodes})


def test_attempt_that_was_cut_off_ends_as_node_lost_and_another_begins(slurm: SlurmNodes) -> None:
    slurm.submit("print('again')", retries=1)
    cut_off(slurm, at=now_text())
    assert slurm.run() == 0, slurm.output
    assert slurm.content("attempts/1/end.json")["result"] == "node-lost"
    assert slurm.content("end.json")["attempts"] == 2


def test_job_is_requeued_when_all_nodes_but_the_lost_one_are_done(slurm: SlurmNodes) -> None:
    slurm.submit("print('again')", retries=1)
    slurm.put("attempts/1/end.json", {"result": "node-lost", "reason": "node 1 does not answer"})
    slurm.put("attempts/1/nodes/0.json", {"state": "ended", "phases": {"running": 1.0, "results": 0.5}})
    slurm.start_with_addresses([0, 1], seconds=1000)
    slurm.wait()
    assert (slurm.requeues, slurm.content("end.json")) == (1, {})


@pytest.mark.parametrize(
    ("attempts", "joined", "checkpoint", "is_retried"),
    [(1, (0, 1), "", True), (2, (0, 1), "", False), (2, (0,), "", True), (2, (0, 1), "step-1", True)],
    ids=["first", "second", "lost before all joined", "progress"],
)
@pytest.mark.parametrize("result", ["node-lost", "interrupted"])
def test_interruption_is_retried_like_the_loss_of_a_node(
    slurm: SlurmNodes,
    monkeypatch: pytest.MonkeyPatch,
    result: str,
    attempts: int,
    joined: tuple[int, ...],
    checkpoint: str,
    is_retried: bool,
) -> None:
    slurm.submit("print('hello')", retries=1)
    for attempt in range(1, attempts + 1):
        slurm.put(f"attempts/{attempt}/start.json", {"resume_from": None})
        slurm.put(f"attempts/{attempt}/end.json", {"result": result})
        for rank in joined:
            slurm.put(f"attempts/{attempt}/nodes/{rank}.json", {})
    if checkpoint:
        slurm.put(f"checkpoints/{checkpoint}.json", {})
    assert attempts_in_process(slurm, monkeypatch).is_retried() == is_retried


@pytest.mark.parametrize(
    ("record", "count"),
    [
        ({}, 0),
        ({"state": "results", "phases": {}}, 0),
        ({"state": "ended", "phases": {"running": 1.0}}, 0),
        ({"state": "ended", "phases": {"running": 1.0, "results": 0.5}}, 1),
        ({"state": "failed", "phases": {"results": 0.5}}, 1),
    ],
)
def test_node_is_done_once_its_results_are_stored(
    slurm: SlurmNodes, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], count: int
) -> None:
    slurm.submit("print('hello')")
    slurm.put("attempts/1/nodes/1.json", record)
    assert attempts_in_process(slurm, monkeypatch).count_done(1) == count


@pytest.mark.parametrize(
    ("more", "result"),
    [
        ({"retries": 0}, "node-lost"),
        ({"retries": 3, "time_limit_seconds": 3600}, "time-limit"),
        ({"retries": 3, "resume_from": "train-20261101-000000"}, "failed"),
    ],
)
def test_job_that_cannot_begin_again_ends(slurm: SlurmNodes, more: dict[str, Any], result: str) -> None:
    slurm.submit("print('again')", **more)
    cut_off(slurm, at="2026-11-24T00:00:00Z")
    assert slurm.run() == 1
    assert slurm.content("end.json")["result"] == result
    assert slurm.content("attempts/2/start.json") == {}


def test_attempt_does_not_begin_if_a_task_did_not_start(slurm: SlurmNodes) -> None:
    slurm.submit("print('begun')")
    slurm.start_with_addresses([1], seconds=0)
    assert slurm.wait() == 1
    assert "Slurm has started 1 nodes; the job needs 2" in slurm.output
    assert slurm.content("attempts/1/start.json") == {}


def test_task_without_an_attempt_runs_nothing(slurm: SlurmNodes) -> None:
    slurm.submit("print('begun')")
    slurm.put("end.json", {"result": "failed", "reason": "", "exit_code": 3})
    assert slurm.run() == 3
    assert [slurm.log(rank=rank) for rank in (0, 1)] == ["", ""]


def test_allocation_of_another_size_does_not_begin(slurm: SlurmNodes) -> None:
    slurm.submit("print('begun')", nodes=1)
    assert slurm.run() == 1
    assert "Slurm has started 2 nodes; the job needs 1" in slurm.output


@pytest.mark.parametrize("state", ["TIMEOUT", "DEADLINE", "COMPLETING", ""])
def test_end_by_slurm_has_a_result_for_every_state(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    monkeypatch.setattr("trainium_userdata.node.trn_slurm.slurm.job_state", lambda: state)
    expected = "time-limit" if state in ("TIMEOUT", "DEADLINE") else "node-lost"
    assert why_ended()[0] == expected
