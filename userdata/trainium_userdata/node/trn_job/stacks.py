"""Prints the stacks of a hanging job's processes, with py-spy if it is installed, otherwise with faulthandler."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from . import processes
from .command import login_shell

PY_SPY_SECONDS = 10
"""Time limit of py-spy, which runs for all processes in parallel. Without --nonblocking, it would wait for a stopped
process."""


def print_stacks(say: Callable[[str], None], has_ended: Callable[[], bool], seconds: float) -> None:
    """Print the stack of each computing process with py-spy. If py-spy is missing or fails, faulthandler prints the
    stack on SIGABRT, which ends the process.

    Args:
        say: Writes a line to the log.
        has_ended: Whether the command has ended.
        seconds: How long to wait for the command to end, so that faulthandler can print.
    """
    computing = processes.computing()
    say("stacks of the processes:")
    for process in _print_with_py_spy(computing, say) if _has_py_spy() else computing:
        # A stopped process handles SIGABRT only after SIGCONT.
        for number in (signal.SIGABRT, signal.SIGCONT):
            with contextlib.suppress(OSError):
                os.kill(process, number)
    end = time.monotonic() + seconds
    while not has_ended() and time.monotonic() < end:
        time.sleep(0.05)


def _print_with_py_spy(computing: list[int], say: Callable[[str], None]) -> list[int]:
    """Print the stacks. Returns the processes without one: Linux may forbid reading a process (ptrace_scope)."""
    with ThreadPoolExecutor(max(1, len(computing))) as threads:
        stacks = list(threads.map(_stack, computing))
    for stack in stacks:
        for line in stack.splitlines():
            say(line)
    return [process for process, stack in zip(computing, stacks) if not stack]


def _has_py_spy() -> bool:
    return bool(_run_in_login_shell("command -v py-spy").strip())


def _stack(process: int) -> str:
    return _run_in_login_shell(f"exec py-spy dump --nonblocking --pid {process}")


def _run_in_login_shell(line: str) -> str:
    """The output of a command line; empty if it fails."""
    try:
        run = subprocess.run(
            ["bash", "-l", "-c", line],
            env=login_shell(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PY_SPY_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout if not run.returncode else ""
