"""Real signals to real processes; only /proc is changed, so that they seem to hold a Neuron device."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trainium_userdata.node.trn_node import files, job_signals

Starter = Callable[..., subprocess.Popen[str]]
# os.write: the signal may arrive while Python writes `ready` to the same buffer.
HANDLES = "import os, signal; signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'saved\\n'))"
IGNORES = "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)"
NO_HANDLER = "pass"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    """Starts a process with the given code at its beginning, which seems to hold a device."""
    monkeypatch.setenv("ROOT", str(tmp_path))
    started: list[subprocess.Popen[str]] = []

    def start_process(beginning: str, link: str = "/dev/neuron0", unit: str = "user.slice") -> subprocess.Popen[str]:
        code = f"{beginning}\nprint('ready', flush=True)\nimport sys\nsys.stdin.read()\nfor _ in range(9): pass"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        folder = tmp_path / f"proc/{process.pid}"
        (folder / "fd").mkdir(parents=True)
        (folder / "fd/3").symlink_to(link)
        (folder / "cgroup").write_text(f"0::/system.slice/{unit}\n")
        (folder / "status").symlink_to(f"/proc/{process.pid}/status")
        return process

    yield start_process
    for process in started:
        process.communicate("")


def output(process: subprocess.Popen[str]) -> str:
    return process.communicate("")[0]


def test_job_with_a_handler_gets_the_signal_once(start: Starter):
    job = start(HANDLES)
    assert job_signals.notify("spot") == f"signalled [{job.pid}], without a handler []"
    assert output(job) == "saved\n"


@pytest.mark.parametrize("beginning", [NO_HANDLER, IGNORES])
def test_job_without_a_handler_is_not_signalled(beginning: str, start: Starter):
    job = start(beginning)
    assert job_signals.notify("spot") == f"signalled [], without a handler [{job.pid}]"
    assert output(job) == ""
    assert job.returncode == 0


def test_process_of_cluster_job_is_signalled_without_a_device(start: Starter):
    job = start(HANDLES, "/dev/null", unit="trn-job.service")
    assert job_signals.notify("spot") == f"signalled [{job.pid}], without a handler []"
    assert output(job) == "saved\n"


def test_process_without_a_device_is_not_signalled(start: Starter):
    other = start(HANDLES, "/dev/null")
    assert job_signals.notify("spot") == "signalled [], without a handler []"
    assert output(other) == ""


def test_ended_process_is_ignored(start: Starter):
    job, ended = start(HANDLES), start(HANDLES)
    ended.communicate("")
    assert job_signals.notify("spot") == f"signalled [{job.pid}], without a handler []"


def test_wall_message_reaches_logged_in_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROOT", str(tmp_path))
    wall = tmp_path / "programs/wall"
    wall.parent.mkdir()
    wall.write_text(f'#!/bin/sh\necho "$1" >{tmp_path}/wall-output\n')
    wall.chmod(0o755)
    monkeypatch.setenv("PATH", str(wall.parent), prepend=":")
    job_signals.notify("EC2 reclaims this Spot Instance")
    assert files.read("wall-output") == "trn-node: EC2 reclaims this Spot Instance\n"
