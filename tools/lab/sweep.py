"""Removes leftovers of earlier runs of the lab: ends their processes by control group."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tools.lab.machine import hierarchies
from tools.lab.paths import PREFIX

TIMEOUT_SECONDS = 60
RUN_GROUP = f"{PREFIX}run"
"""The control group of the run itself. Each node has its own."""


def join() -> None:
    """Put this process, and the children that it starts later, where `sweep` finds them."""
    for hierarchy in hierarchies():
        group = hierarchy / RUN_GROUP
        group.mkdir(exist_ok=True)
        (group / "cgroup.procs").write_text(str(os.getpid()))


def leave() -> None:
    """Move this process to the root control groups, which `sweep` leaves alone."""
    for hierarchy in hierarchies():
        (hierarchy / "cgroup.procs").write_text(str(os.getpid()))


def sweep() -> None:
    """End every process of every lab on this machine and remove their control groups.

    Their mounts, links and network namespaces belonged to these processes and end with them.

    Raises:
        TimeoutError: Processes did not end within TIMEOUT_SECONDS.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while groups := list(_groups()):
        for group in groups:
            for pid in _processes(group):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            # Busy until the last process has ended.
            with contextlib.suppress(OSError):
                group.rmdir()
        if time.monotonic() > deadline:
            places = ", ".join(map(str, groups))
            raise TimeoutError(f"killed processes of the lab did not end; see cgroup.procs in {places}")
        time.sleep(0.05)


def _processes(group: Path) -> list[str]:
    """The IDs of a group's processes; none if systemd on the node has removed the group meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        return (group / "cgroup.procs").read_text().split()
    return []


def _groups() -> Iterator[Path]:
    """The lab's control groups, inner ones first."""
    for hierarchy in hierarchies():
        for top in hierarchy.glob(f"{PREFIX}*"):
            inner = sorted((folder for folder in top.rglob("*") if folder.is_dir()), reverse=True)
            yield from (*inner, top)
