"""Jobs on booted nodes: systemd, the image's user, real networks that break, power that goes; the job is plain Python.

Its nodes exchange a number over TCP at every step, so that none goes on without the other; what node 0 computes at the
end tells whether a job that went on from a checkpoint did exactly what one does that nobody disturbed.
"""

import time
from collections.abc import Iterator

import pytest

from lab.cluster_jobs import UNIT, JobCluster
from lab.laboratory import Laboratory
from lab.network import cable
from lab.plans import lab_plan
from lab.shell import run
from lab.site import Site
from lab.waiting import wait_for

STEPS = 40
SCRIPT = """
import json, os, pathlib, socket, sys, time
rank, steps, pause = int(os.environ["TRN_NODE_RANK"]), int(sys.argv[1]), float(sys.argv[2])
state = {"step": 0, "value": 1}
if "TRN_RESUME_FROM" in os.environ:
    state = json.loads((pathlib.Path(os.environ["TRN_RESUME_FROM"]) / "state").read_text())
if rank == 0:
    peer = socket.create_server(("", 41000)).accept()[0]
else:
    while True:
        try:
            peer = socket.create_connection((os.environ["HEAD_NODE"], 41000))
            break
        except OSError:
            time.sleep(0.2)
lines = peer.makefile("rw")
while state["step"] < steps:
    print(state["value"], file=lines, flush=True)
    other = lines.readline()
    if not other:
        raise ConnectionResetError("Connection closed by peer")
    assert int(other) == state["value"], "the nodes have drifted apart"
    state = {"step": state["step"] + 1, "value": state["value"] * 31 % 1000003 + 1}
    print(f"TRN step={state['step']} loss={state['value']}", flush=True)
    if rank == 0:
        new = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"], f"step-{state['step']}.tmp")
        new.mkdir()
        (new / "state").write_text(json.dumps(state))
        new.rename(new.with_suffix(""))
    time.sleep(pause)
(pathlib.Path(os.environ["TRN_OUTPUT_DIR"]) / "value").write_text(str(state["value"]))
"""
FILES = {"train.py": SCRIPT}


def value_after(steps: int) -> int:
    value = 1
    for _ in range(steps):
        value = value * 31 % 1000003 + 1
    return value


def command(pause: float) -> str:
    return f"python3 train.py {STEPS} {pause}"


@pytest.fixture(scope="module")
def cluster(lab: Laboratory) -> Iterator[JobCluster]:
    made = JobCluster(Site(lab, lab_plan(instance_type="trn1.2xlarge")), 2)
    yield made
    made.close()


def running(cluster: JobCluster, job: str, attempt: int = 1) -> None:
    """Wait until a job computes."""
    wait_for(f"steps of {job}", lambda: "TRN step=3 " in cluster.log(job, 0, attempt))


def test_a_job_runs_on_all_nodes_as_the_images_user_and_succeeds(cluster: JobCluster) -> None:
    submitted = time.monotonic()
    cluster.submit("sound", f"id -un; {command(0.05)}", FILES)
    # Which takes both nodes.
    wait_for("a step", lambda: "TRN step=1 " in cluster.log("sound", 0))
    print(f"submitted to first step: {time.monotonic() - submitted:.1f} s")
    end = cluster.end_of("sound")
    assert (end["result"], end["attempts"]) == ("succeeded", 1)
    assert cluster.output("sound", "value") == str(value_after(STEPS))
    for rank in (0, 1):
        assert "\nroot\n" not in cluster.log("sound", rank)
        wait_for("the unit's end", lambda rank=rank: cluster.processes(rank) == [])


def test_a_killed_process_ends_the_job_on_both_nodes(cluster: JobCluster) -> None:
    cluster.submit("killed", command(0.5), FILES)
    running(cluster, "killed")
    killed = time.monotonic()
    cluster.nodes[1].execute("pkill", "-KILL", "-f", "^python3 train.py")
    end = cluster.end_of("killed")
    print(f"killed to the job's end: {time.monotonic() - killed:.1f} s")
    instance = cluster.nodes[1].instance.instance_id
    assert (end["result"], end["exit_code"]) == ("failed", -9)
    assert end["reason"] == f"node 1 ({instance}): ended by signal 9 (SIGKILL): out of memory?"
    for rank in (0, 1):
        wait_for("the unit's end", lambda rank=rank: cluster.processes(rank) == [])


def test_a_job_that_is_stopped_leaves_nothing_running(cluster: JobCluster) -> None:
    cluster.submit("stopped", command(0.5), FILES)
    running(cluster, "stopped")
    assert all(cluster.processes(rank) for rank in (0, 1))
    cluster.put("stopped", "stop.json", {"at": "2026-11-22T19:05:01Z", "reason": "trn stop"})
    assert cluster.end_of("stopped")["result"] == "stopped"
    for rank in (0, 1):
        wait_for("the unit's end", lambda rank=rank: cluster.processes(rank) == [])


def test_a_job_outlives_a_power_cut_of_a_node_and_its_replacement(cluster: JobCluster) -> None:
    cluster.submit("outlives", command(0.5), FILES, retries=2)
    running(cluster, "outlives")
    cut = time.monotonic()
    cluster.nodes[1].cut_power()
    lost = wait_for("the loss", lambda: cluster.content("outlives", "attempts/1/end.json"))
    print(f"power cut to node-lost: {time.monotonic() - cut:.1f} s")
    assert lost["result"] == "node-lost"
    cluster.replace(1)
    replaced = time.monotonic()
    start = wait_for("the next attempt", lambda: cluster.content("outlives", "attempts/2/start.json"))
    wait_for("a step", lambda: "TRN step=" in cluster.log("outlives", 0, 2))
    print(f"new roster to the next step: {time.monotonic() - replaced:.1f} s")
    assert start["resume_from"].startswith("step-")
    end = cluster.end_of("outlives")
    assert (end["result"], end["attempts"]) == ("succeeded", 2)
    assert "TRN step=1 " not in cluster.log("outlives", 0, 2)
    assert cluster.output("outlives", "value") == str(value_after(STEPS))


def test_a_job_outlives_a_cable_that_is_pulled_for_a_while(cluster: JobCluster) -> None:
    cluster.submit("pulled", command(0.5), FILES, retries=2)
    running(cluster, "pulled")
    link = cable(cluster.nodes[1].instance.address)
    pulled = time.monotonic()
    run("ip", "link", "set", link, "down")
    lost = wait_for("the loss", lambda: cluster.content("pulled", "attempts/1/end.json"))
    print(f"pulled cable to node-lost: {time.monotonic() - pulled:.1f} s")
    assert lost["result"] == "node-lost"
    assert "does not answer" in lost["reason"]
    run("ip", "link", "set", link, "up")
    end = cluster.end_of("pulled", seconds=180)
    assert (end["result"], end["attempts"]) == ("succeeded", 2)
    assert cluster.output("pulled", "value") == str(value_after(STEPS))


def test_a_node_that_reboots_loses_the_attempt_and_takes_part_in_the_next(cluster: JobCluster) -> None:
    cluster.submit("reboots", command(0.5), FILES, retries=2)
    running(cluster, "reboots")
    cluster.nodes[1].execute("systemctl", "reboot", "--force", "--force", "--no-block")
    end = cluster.end_of("reboots", seconds=180)
    assert (end["result"], end["attempts"]) == ("succeeded", 2)
    lost = cluster.content("reboots", "attempts/1/end.json")
    assert lost
    assert lost["result"] == "node-lost"
    assert cluster.output("reboots", "value") == str(value_after(STEPS))


def test_no_unit_has_failed(cluster: JobCluster) -> None:
    for node in cluster.nodes:
        assert UNIT not in node.execute("systemctl", "--failed", "--plain", "--no-legend")
