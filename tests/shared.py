"""What one run of pytest makes once for all of its workers: files in a folder, and processes. They end with the run."""

import ctypes
import fcntl
import hashlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

VARIABLE = "TRN_TESTS_SHARED"
ROOT = Path(__file__).parents[1]
READ_AT_START = ("LANG", "LC_", "LD_", "PYTHON", "TZ")
"""Beginnings of variables that only a new interpreter heeds: other values of them need another process."""
PR_SET_PDEATHSIG = 1  # of Linux's prctl
GARBAGE_THRESHOLDS = (20_000, 20, 50)
"""Python's own, 700 new objects, have the collector take a tenth of the time of a test that calls moto."""

_run_is_alive: list[int] = []


def begin() -> None:
    """Make the folder; workers that are started from now on find it."""
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="trn-tests-")
    os.mkfifo(_lifeline())
    _run_is_alive.append(os.open(_lifeline(), os.O_RDWR))  # closed by the system, however this process ends


def end() -> None:
    os.close(_run_is_alive.pop())
    shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)


def _lifeline() -> Path:
    """A pipe that has a writer as long as the run goes on."""
    return Path(os.environ[VARIABLE]) / "lifeline"


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` has filled, in this process or in another worker of the same run.

    name: says all that decides what is made.
    """
    folder = Path(os.environ[VARIABLE]) / hashlib.sha256(name.encode()).hexdigest()[:32]
    complete = folder.with_suffix(".complete")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder


def connect(command: Sequence[str], environment: Mapping[str, str] | None = None) -> socket.socket:
    """A connection to the process of a Python program, which is started once for all workers of the run.

    command: the arguments of the interpreter. The program answers what `requests` gives it.
    environment: by default this process's own.
    """
    given = dict(os.environ if environment is None else environment)

    def start(folder: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(folder / "socket"))
            listener.listen(100)
            subprocess.Popen(
                [sys.executable, *command],
                stdin=listener.fileno(),
                stdout=subprocess.DEVNULL,
                cwd=ROOT,
                env=given | {VARIABLE: os.environ[VARIABLE]},
                start_new_session=True,
            )

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(made_once(" ".join(command) + _read_at_start(given), start) / "socket"))
    return connection


def _read_at_start(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={environment[name]}" for name in sorted(environment) if name.startswith(READ_AT_START))


def end_with_parent() -> None:
    """Have a forked process end when the one that forked it does, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def requests() -> Iterator[socket.socket]:
    """The connections that others make to this process, which `connect` has started, until the run ends."""
    lifeline = os.open(_lifeline(), os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(fileno=sys.stdin.fileno()) as listener:
        while lifeline not in select.select([listener, lifeline], [], [])[0]:
            yield listener.accept()[0]
