"""Tells processes that use devices or belong to a job, and logged-in users, that the node will be interrupted."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

from . import files
from .job_unit import UNIT
from .usage import holds_a_device

SIGNAL = signal.SIGUSR1
"""The signal on which training frameworks save and stop. It kills a process that does not handle it."""

WALL_TIMEOUT_SECONDS = 10


def notify(text: str) -> str:
    """Send SIGNAL to each of these processes that handles SIGNAL, and write to all terminals. Returns what was done."""
    signalled: list[int] = []
    unhandled: list[int] = []
    for folder in files.path("proc").glob("[0-9]*"):
        # Processes can end at any time, and some cannot be read.
        with contextlib.suppress(OSError):
            process = int(folder.name)
            # The descriptor guarantees that the process ID is not reused before the signal.
            descriptor = os.pidfd_open(process)
            try:
                if holds_a_device(folder) or _is_in_the_job(folder):
                    handles = handles_signal((folder / "status").read_text())
                    (signalled if handles else unhandled).append(process)
                    if handles:
                        signal.pidfd_send_signal(descriptor, SIGNAL)
            finally:
                os.close(descriptor)
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(["wall", f"trn-node: {text}"], timeout=WALL_TIMEOUT_SECONDS, capture_output=True)
    return f"signalled {signalled}, without a handler {unhandled}"


def _is_in_the_job(folder: Path) -> bool:
    """Whether a process belongs to a job, by its unit, or on a Slurm node by its environment."""
    return f"/{UNIT}" in (folder / "cgroup").read_text() or b"\0TRN_JOB=" in (folder / "environ").read_bytes()


def handles_signal(status: str) -> bool:
    """Whether a process handles SIGNAL, by SigCgt in proc_pid_status(5): a mask whose lowest bit is signal 1."""
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    return bool(caught) and bool(int(caught[1], 16) >> (SIGNAL - 1) & 1)
