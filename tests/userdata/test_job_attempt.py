"""An attempt of a job, run for real: wrappers, login shells, processes, signals and sockets; S3 is a stand-in."""

import json
import os
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.userdata.job_nodes import JobNodes
from tests.userdata.node_files import BUCKET, JOB, TIMEOUT_SECONDS
from trainium_core.explanations.known_errors import known_error

ENDLESS = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(1)\n"
ON_NODE = "import os\nnode = int(os.environ['TRN_NODE_RANK'])\n"


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_job_that_succeeds_on_all_nodes_succeeds(nodes: JobNodes) -> None:
    nodes.start(ON_NODE + "print(f'node {node} computes')", nodes=2)
    assert nodes.wait() == [0, 0]
    assert (nodes.end["result"], nodes.end["exit_code"]) == ("succeeded", 0)
    assert [nodes.record(rank)["state"] for rank in (0, 1)] == ["succeeded", "succeeded"]
    assert "node 0 computes\n" in nodes.log(0)
    assert "node 1 computes\n" in nodes.log(1)


def test_node_that_has_succeeded_reads_the_end_of_the_attempt_more_often(nodes: JobNodes) -> None:
    nodes.start("pass", nodes=2, timing={"poll": 10 * TIMEOUT_SECONDS, "others": 0.1})
    assert nodes.wait() == [0, 0]


def test_outputs_of_all_nodes_are_stored_before_the_job_succeeds(nodes: JobNodes) -> None:
    nodes.start("import os\nopen(os.environ['TRN_OUTPUT_DIR'] + '/result', 'w').write('1')", nodes=2)
    nodes.wait()
    written = [key.removeprefix(f"{BUCKET}/jobs/{JOB}/") for key in nodes.aws.records]
    end = written.index("attempts/1/end.json")
    assert {"outputs/result", "outputs/node-1/result"} <= set(written[:end])


def test_command_has_the_documented_variables(nodes: JobNodes) -> None:
    names = "TRN_JOB TRN_ATTEMPT TRN_NODES TRN_NODE_RANK HEAD_NODE PYTHONFAULTHANDLER PYTHONUNBUFFERED VIRTUAL_ENV MINE"
    nodes.start(
        f"import os\nprint(*[os.environ[name] for name in '{names}'.split()], 'TRN_RESUME_FROM' in os.environ,"
        " 'PYTHONPATH' in os.environ)",
        environment={"MINE": 'it\'s "mine" $HOME'},
        venv="/opt/venv",
    )
    nodes.wait()
    assert f'{JOB} 1 1 0 127.0.0.2 1 1 /opt/venv it\'s "mine" $HOME False False\n' in nodes.log()


def test_progress_and_phases_are_recorded(nodes: JobNodes) -> None:
    nodes.start(
        "print('[rank 0] TRN step=1 loss=2.5 tokens=64 lr=0.1')\n"
        "import time\ntime.sleep(0.1)\n"
        "print('[rank 0] TRN step=2 loss=2.25 tokens=64 lr=0.1')",
        setup="echo prepared",
    )
    nodes.wait()
    progress = nodes.record()["progress"]
    assert (progress["step"], progress["loss"], progress["lr"]) == (2, 2.25, "0.1")
    assert progress["steps_per_second"] > 0
    assert progress["tokens_per_second"] == pytest.approx(64 * progress["steps_per_second"], rel=0.01)
    assert {"source", "setup", "first_step", "running", "results"} <= nodes.record()["phases"].keys()
    assert "prepared\n" in nodes.log()


def test_outputs_of_a_stopped_job_are_stored(nodes: JobNodes) -> None:
    write = "open(os.environ['TRN_OUTPUT_DIR'] + '/model.txt', 'w').write(f'of node {node}')\n"
    nodes.start(ON_NODE + write + ENDLESS, nodes=2)
    nodes.await_(lambda: all("ready" in nodes.log(rank) for rank in (0, 1)))
    nodes.put("stop.json", {})
    nodes.wait()
    prefix = f"{BUCKET}/jobs/{JOB}/outputs/"
    stored = {key.removeprefix(prefix): text for key, text in nodes.aws.records.items() if key.startswith(prefix)}
    assert stored == {"model.txt": "of node 0", "node-1/model.txt": "of node 1"}


def test_failed_process_ends_all_nodes_with_its_traceback(nodes: JobNodes) -> None:
    script = (
        ON_NODE + "import time\nprint('ready', flush=True)\n"
        "while node == 0: time.sleep(1)\n"
        "try: {}['first']\nexcept KeyError: raise ValueError('no such data set')\n"
    )
    nodes.start(script, nodes=2)
    assert nodes.wait() == [1, 1]
    end = nodes.end
    assert (end["result"], end["node"], end["instance_id"], end["exit_code"]) == ("failed", 1, "i-1", 1)
    assert end["reason"] == "node 1 (i-1): ValueError: no such data set"
    assert end["traceback"].startswith("Traceback (most recent call last):")
    assert "KeyError: 'first'" in end["traceback"]
    assert [nodes.record(rank)["state"] for rank in (0, 1)] == ["ended", "failed"]


def test_node_has_not_ended_while_its_processes_end(nodes: JobNodes) -> None:
    may_end = nodes.folder / "may-end"
    script = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\n"
        f"while not os.path.exists('{may_end}'): time.sleep(0.02)\n"
    )
    nodes.start(script, timing={"grace": TIMEOUT_SECONDS})
    nodes.await_(lambda: "ready" in nodes.log())
    nodes.put("stop.json", {})
    nodes.await_(lambda: nodes.record()["state"] != "running")
    assert nodes.record()["state"] == "ending"
    may_end.touch()
    assert nodes.wait() == [1]
    assert nodes.record()["state"] == "ended"


def test_failed_node_takes_precedence_over_lost_connection(nodes: JobNodes) -> None:
    script = (
        ON_NODE + "import time\n"
        "if node == 0: raise ConnectionResetError(104, 'Connection reset by peer')\n"
        "time.sleep(1)\nraise ValueError('the cause')\n"
    )
    nodes.start(script, nodes=2)
    nodes.wait()
    assert nodes.end["reason"] == "node 1 (i-1): ValueError: the cause"


def test_stopped_job_leaves_no_process(nodes: JobNodes) -> None:
    spawn = (
        "import subprocess, sys, os\n"
        "code = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)'\n"
        "child = subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        "open(os.environ['TRN_OUTPUT_DIR'] + '/pids', 'w').write(f'{child.pid} {os.getpid()}')\n" + ENDLESS
    )
    nodes.start(spawn, timing={"grace": 0.3})
    nodes.await_(lambda: "ready" in nodes.log())
    nodes.put("stop.json", {"at": "2026-11-22T19:05:01Z", "reason": "trn stop"})
    assert nodes.wait() == [1]
    assert (nodes.end["result"], nodes.end["reason"]) == ("stopped", "trn stop")
    pids = [int(text) for text in nodes.aws.records[f"{BUCKET}/jobs/{JOB}/outputs/pids"].split()]
    assert [process for process in pids if runs(process)] == []


def test_node_without_its_wrapper_is_lost(nodes: JobNodes) -> None:
    nodes.start(ENDLESS, nodes=3)
    nodes.await_(lambda: all(nodes.record(rank).get("state") == "running" for rank in range(3)))
    children = Path(f"/proc/{nodes.processes[2].pid}/task/{nodes.processes[2].pid}/children").read_text().split()
    nodes.processes[2].send_signal(signal.SIGKILL)
    assert nodes.wait()[:2] == [1, 1]
    for child in children:
        with suppress(ProcessLookupError):  # a child may have ended by itself meanwhile
            os.killpg(int(child), signal.SIGKILL)
    assert nodes.end["result"] == "node-lost"
    assert nodes.end["reason"].startswith(
        "node 2 (i-2, 127.0.0.4) answers, but its part of the job has ended, according to node"
    )


def test_hang_ends_with_process_stacks_in_the_log(nodes: JobNodes) -> None:
    script = (
        "import os, signal\n"
        "def stands_still():\n"
        f"    open('{nodes.folder}/ready-' + os.environ['TRN_NODE_RANK'], 'w')\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "stands_still()\n"
    )
    # A slow start of Python on one of the nodes does not count as a hang.
    both = f"[ -e {nodes.folder}/ready-0 ] && [ -e {nodes.folder}/ready-1 ]"
    starting = f"while ! {{ {both}; }}; do echo starting; sleep 0.1; done &"
    nodes.start(script, nodes=2, hang_seconds=1, command=f"{starting} {sys.executable} train.py")
    assert nodes.wait() == [1, 1]
    assert nodes.end["result"] == "hung"
    for rank in (0, 1):
        assert "in stands_still" in nodes.log(rank)


@pytest.mark.parametrize(
    "script",
    [
        "import sys, time\nfor step in range(90):\n    print('\\r', step, end='', flush=True)\n    time.sleep(0.1)\n",
        "import subprocess, time\nsubprocess.run(['bash', '-c', 'exec -a neuronx-cc ./neuronx-cc 9'])\n",
    ],
    ids=["progress bar", "silent compiler"],
)
def test_silent_job_that_is_alive_is_not_ended(nodes: JobNodes, script: str) -> None:
    link = f"ln -s {shutil.which('sleep')} neuronx-cc; "
    nodes.start(script, hang_seconds=5, command=f"{link}{sys.executable} -S train.py")
    assert nodes.wait() == [0], nodes.end


def test_silent_compiler_on_another_node_is_not_a_hang(nodes: JobNodes) -> None:
    script = ON_NODE + (
        "import subprocess, time\nif node: subprocess.run(['./neuronx-cc', '14'])\nelse: time.sleep(9)\n"
    )
    link = f"ln -s {shutil.which('sleep')} neuronx-cc; "
    nodes.start(script, nodes=2, hang_seconds=6, command=f"{link}{sys.executable} -S train.py")
    assert nodes.wait() == [0, 0], nodes.end


def test_long_line_keeps_its_rank_in_all_parts(nodes: JobNodes) -> None:
    nodes.start("print('[rank 3] ' + 'x' * 100_000)")
    nodes.wait()
    parts = [line for line in nodes.log().splitlines() if "xxx" in line]
    assert len(parts) > 1
    assert all(line.startswith("[rank 3] ") for line in parts)
    assert sum(line.count("x") for line in parts) == 100_000


def test_hang_ends_with_stacks_of_installed_py_spy(nodes: JobNodes) -> None:
    program = nodes.folder / "bin/py-spy"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "Process $4: py-spy was here"\n')
    program.chmod(0o755)
    (nodes.folder / ".bash_profile").write_text(f'PATH="{program.parent}:$PATH"\n')
    ready = nodes.folder / "ready"
    script = f"import time\nopen('{ready}', 'w')\ntime.sleep(600)\n"
    # A slow start of Python does not count as a hang.
    starting = f"until [ -e {ready} ]; do echo starting; sleep 0.1; done &"
    command = f"{starting} {sys.executable} train.py"
    nodes.start(script, hang_seconds=1, timing={"stacks": 0}, command=command)
    assert nodes.wait() == [1]
    assert "py-spy was here" in nodes.log()
    assert "most recent call first" not in nodes.log()


def test_only_the_wrapper_can_notify_the_systemd_watchdog(nodes: JobNodes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("")
        systemd.settimeout(TIMEOUT_SECONDS)
        address = systemd.getsockname()[1:].decode()
        nodes.environment = {"NOTIFY_SOCKET": f"@{address}", "WATCHDOG_USEC": "400000"}
        enough = nodes.folder / "enough"
        nodes.start(
            "import os, time\n"
            "print('NOTIFY_SOCKET' in os.environ)\n"
            f"while not os.path.exists('{enough}'): time.sleep(0.02)"
        )
        assert [systemd.recv(64) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        enough.touch()
        assert nodes.wait() == [0]
    assert "False\n" in nodes.log()


@pytest.mark.parametrize("setup", [None, "sleep 60"])
def test_time_limit_ends_the_command_and_the_setup(nodes: JobNodes, setup: str | None) -> None:
    nodes.start(ENDLESS, setup=setup, time_limit_seconds=3600, seconds_left=0.5)
    nodes.wait()
    assert (nodes.end["result"], nodes.end["reason"]) == (
        "time-limit",
        "the job reached its time limit of 3600 seconds",
    )


def test_processes_that_the_command_left_running_are_killed_and_named(nodes: JobNodes) -> None:
    script = "import os, subprocess\nname = ['sleep', 'tail'][int(os.environ['TRN_NODE_RANK'])]\n"
    script += (
        "subprocess.Popen([name, *(['1000'] if name == 'sleep' else ['-f', '/dev/null'])], start_new_session=True)"
    )
    nodes.start(script, nodes=2)
    assert nodes.wait() == [0, 0]
    assert "[trn] processes that the command left running are killed: sleep\n" in nodes.log()
    assert (nodes.end["result"], nodes.end["reason"]) == (
        "succeeded",
        "processes that the command left running in the background were killed: sleep, tail; if they belong to the "
        "job, let the command wait for them, in Bash with `wait`",
    )


TOKEN = "arn:aws:ssm:us-west-2:123456789012:parameter/token"


def test_secret_is_only_in_the_environment(nodes: JobNodes) -> None:
    nodes.aws.secrets[TOKEN] = "pa$$ word-31337"
    script = "import os, sys\nprint('got', os.environ['TOKEN'])\nsys.exit(len(os.environ['TOKEN']) != 15)"
    nodes.start(script, secrets={"TOKEN": TOKEN}, setup='echo setup has "$TOKEN"')
    assert nodes.wait() == [0]
    assert "got ***\n" in nodes.log()
    assert "setup has ***\n" in nodes.log()
    files = [file.read_bytes() for file in nodes.folder.rglob("*") if file.is_file()]
    assert not [text for text in files if b"31337" in text]
    assert not [text for text in nodes.aws.records.values() if "31337" in text]


def test_secret_in_a_line_that_is_split_is_masked(nodes: JobNodes) -> None:
    nodes.aws.secrets[TOKEN] = "pa$$ word-31337"
    script = "import os\nprint(('x' * 37 + os.environ['TOKEN']) * 2000)"
    nodes.start(script, secrets={"TOKEN": TOKEN})
    assert nodes.wait() == [0]
    assert "***" in nodes.log()
    for part in ("pa$$", "word", "313", "337"):
        assert part not in nodes.log()


def test_refused_secret_is_named_and_nothing_runs(nodes: JobNodes) -> None:
    nodes.start("print('computes')", secrets={"TOKEN": TOKEN})
    nodes.wait()
    assert nodes.end["reason"] == (
        f"node 0 (i-0): the secret TOKEN: AWS returns no value for {TOKEN}: AccessDeniedException no policy allows it"
    )
    assert "computes" not in nodes.log()


def test_variables_may_contain_those_of_folders_which_are_beside_the_source(nodes: JobNodes) -> None:
    script = "import os\nprint(os.environ['WHERE'] == os.environ['TRN_OUTPUT_DIR'] + '/x $HOME')\n"
    script += "print(*(os.path.samefile('../' + name, os.environ[v]) for name, v in (('outputs', 'TRN_OUTPUT_DIR'), "
    script += "('checkpoints', 'TRN_CHECKPOINT_DIR'))))"
    nodes.start(script, environment={"WHERE": "$TRN_OUTPUT_DIR/x $HOME"})
    assert nodes.wait() == [0]
    assert "True\nTrue True\n" in nodes.log()


COUNTS_ERRORS = """
import os, pathlib, time
ready = pathlib.Path({folder!r}, "ready")
ready.mkdir(exist_ok=True)
(ready / os.environ["TRN_NODE_RANK"]).touch()
while len(list(ready.iterdir())) < {nodes}:
    time.sleep(0.1)
counter = open({counter!r}, "w")
counter.write("2")
counter.close()
raise SystemExit({code})
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "exit code 1; Neuron device 3: {words}"),
        (0, "results may be wrong: node 0: Neuron device 3: {words}, node 1: Neuron device 3: {words}"),
    ],
)
def test_device_that_counts_errors_is_named_in_the_end_of_a_job(nodes: JobNodes, code: int, reason: str) -> None:
    counter = nodes.folder / "sys/devices/virtual/neuron_device/neuron3/stats/hardware/mem_ecc_uncorrected"
    counter.parent.mkdir(parents=True)
    counter.write_text("1")
    number = 1 if code else 2
    nodes.start(
        COUNTS_ERRORS.format(folder=str(nodes.folder), nodes=number, counter=str(counter), code=code), nodes=number
    )
    nodes.wait()
    words = "new uncorrectable memory errors (mem_ecc_uncorrected)"
    assert nodes.end["reason"].endswith(reason.format(words=words))
    known = known_error(nodes.end["reason"])
    assert known
    assert known.name == "uncorrectable memory error"
    assert nodes.record()["device_errors"] == [f"Neuron device 3: {words}"]


@pytest.mark.parametrize("answer", ["cat {counts}", "sleep 1000"])
def test_gpu_that_counts_errors_is_named_in_the_end_of_a_failed_job(nodes: JobNodes, answer: str) -> None:
    (nodes.folder / "sys/module/nvidia").mkdir(parents=True)
    (nodes.folder / "sys/module/nvidia/version").write_text("580.126.09")
    counts, calls, bin_folder = nodes.folder / "counts.csv", nodes.folder / "calls", nodes.folder / "bin"
    counts.write_text("0, 1, Disabled, Enabled, 1\n1, 1, Disabled, Enabled, 0\n")
    bin_folder.mkdir()
    (bin_folder / "nvidia-smi").write_text(f"#!/bin/sh\necho >>{calls}\n{answer.format(counts=counts)}\n")
    (bin_folder / "nvidia-smi").chmod(0o755)
    nodes.environment["PATH"] = f"{bin_folder}:{os.environ['PATH']}"
    more = "0, 1, Disabled, Enabled, 3\n1, 1, Disabled, Enabled, 0\n"
    nodes.start(f"open({str(counts)!r}, 'w').write({more!r})\nraise SystemExit(1)")
    nodes.wait()
    hangs = answer.startswith("sleep")
    words = "GPU 0: new uncorrected memory errors"
    assert nodes.end["reason"].endswith("exit code 1" if hangs else f"exit code 1; {words}")
    assert nodes.record()["device_errors"] == ([] if hangs else [words])
    assert len(calls.read_text()) == (1 if hangs else 2)
    known = known_error(f"node i-0: {words}")
    assert known
    assert known.name == "uncorrectable memory error"


def test_report_of_a_node_has_its_metrics_in_this_attempt(nodes: JobNodes, tmp_path: Path) -> None:
    measured = {"job": JOB, "attempt": 1, "minutes": 1, "buckets": [[90, 1]]}
    (tmp_path / "metrics.json").write_text(json.dumps(measured))
    nodes.start("", metrics_file=str(tmp_path / "metrics.json"))
    nodes.wait()
    assert nodes.record()["utilization"] == measured
    nodes.next_attempt()
    (tmp_path / "metrics.json").write_text(json.dumps({**measured, "attempt": 7}))
    nodes.start("", metrics_file=str(tmp_path / "metrics.json"))
    nodes.wait()
    assert nodes.record()["utilization"] is None
