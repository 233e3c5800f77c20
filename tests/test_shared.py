"""What the workers of one run of pytest share."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.shared import ROOT, connect

PROGRAM = """
import os
from tests.shared import requests

for request in requests():
    request.sendall(str(os.getpid()).encode())
"""
RUN = f"""
import sys
from tests import shared

shared.begin()
connection = shared.connect(["-c", {PROGRAM!r}])
print(connection.getpeername(), flush=True)
sys.stdin.read()
"""
PARENT = """
import os, signal
from tests.shared import end_with_parent

reading, writing = os.pipe()
if (child := os.fork()) == 0:
    end_with_parent()
    os.write(writing, b".")
    signal.pause()
os.read(reading, 1)
print(child, flush=True)
signal.pause()
"""
SECONDS = 60


def test_all_are_answered_by_one_process() -> None:
    answers: list[bytes] = []
    for _ in range(2):
        with connect(["-c", PROGRAM]) as connection:
            connection.settimeout(SECONDS)
            answers.append(connection.recv(100))
    assert answers[0] == answers[1] != b""


def test_what_a_new_interpreter_would_heed_has_a_process_of_its_own() -> None:
    answers: set[bytes] = set()
    for zone in ("UTC", "Asia/Tokyo"):
        with connect(["-c", PROGRAM], {**os.environ, "TZ": zone}) as connection:
            connection.settimeout(SECONDS)
            answers.add(connection.recv(100))
    assert len(answers) == 2


def test_a_shared_process_ends_with_a_run_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        path = Path(run.stdout.readline().strip())
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(str(path))
            connection.settimeout(SECONDS)
            process = os.pidfd_open(int(connection.recv(100)))
        run.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([process], [], [], SECONDS)
    os.close(process)
    shutil.rmtree(path.parents[1])
    assert ended == [process]


def test_a_forked_process_ends_with_its_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        process = os.pidfd_open(int(parent.stdout.readline()))
        assert not select.select([process], [], [], 0)[0]
        parent.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([process], [], [], SECONDS)
    os.close(process)
    assert ended == [process]
