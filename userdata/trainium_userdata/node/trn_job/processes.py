"""The processes of a job: all descendants of this process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from trn_node.job_signals import SIGNAL, handles_signal

PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): orphaned processes become children of this process, so that it can find them."""

KILL_SECONDS = 10
LEAVING_SECONDS = 2
"""How long the last processes of a command may still run after it has ended, such as helpers of multiprocessing."""

COMPILERS = ("neuronx-cc", "neuron-cc", "walrus_driver", "hlo2penguin", "hlo-opt")
"""Names of Neuron's compilers and of the programs that they start."""


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[int]:
    """The descendants that are running, in no particular order."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(folder.name))
    processes: list[int] = []
    left = [os.getpid()]
    while left:
        direct = children.get(left.pop(), [])
        processes += direct
        left += direct
    return processes


def computing() -> list[int]:
    """The computing processes: those with a RANK in their environment, otherwise those without children."""
    running = descendants()
    with_rank = [process for process in running if "RANK" in _environment(process)]
    parents = {_parent(process) for process in running}
    return with_rank or [process for process in running if process not in parents]


def notify() -> None:
    """Send SIGNAL to the processes that handle it, because it would end the others."""
    for process in handling_notices():
        with contextlib.suppress(OSError):
            os.kill(process, SIGNAL)


def handling_notices() -> list[int]:
    """The processes that handle SIGNAL."""
    handling: list[int] = []
    for process in descendants():
        with contextlib.suppress(OSError):
            if handles_signal(Path(f"/proc/{process}/status").read_text()):
                handling.append(process)
    return handling


def compiles() -> bool:
    """Whether a Neuron compiler is running: the first compilation of a large model may print nothing for an hour."""
    return any(_name(process) in COMPILERS for process in descendants())


def left_running() -> list[str]:
    """The names of the descendants that still run after LEAVING_SECONDS, when the command has ended."""
    end = time.monotonic() + LEAVING_SECONDS
    while (left := descendants()) and time.monotonic() < end:
        time.sleep(0.05)
    return sorted(filter(None, map(_name, left)))


def kill_all() -> None:
    """Kill all descendants, including those started in the meantime. Gives up after KILL_SECONDS."""
    end = time.monotonic() + KILL_SECONDS
    while time.monotonic() < end:
        left = descendants()
        if not left:
            return
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def _environment(process: int) -> list[str]:
    try:
        text = Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        return []
    return [variable.split("=", 1)[0] for variable in text.split("\0")]


def _name(process: int) -> str:
    """The program's name in the kernel, which cuts it to 15 characters; empty if the process has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


def _parent(process: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
