"""The user of jobs: its files and its processes."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import files
from .check import CONTAINER
from .programs import run

JOB_USER, JOB_UID = "trn-job", 60800
"""The user of jobs, and of the computations that verify a node. The number is the same on all nodes, because of shared
file systems. It is in no range for other users (systemd, UIDs and GIDs)."""
KEPT_FOLDERS = 3
"""The folders of this many attempts whose results did not reach S3 are kept, the older ones within half of the disk."""
ENDING_SECONDS = 20
DELETING_SECONDS = 3600


def job_user_exists() -> bool:
    return any(line.startswith(f"{JOB_USER}:") for line in files.read("etc/passwd").splitlines())


def verification_user(plan: Mapping[str, Any]) -> str:
    """The user of the computations that verify a node. In a container, only root exists for certain."""
    return "root" if plan.get("scope") == CONTAINER else JOB_USER


def make_job_user_folder(path: Path) -> None:
    """Create a folder for the user of jobs. Raises OSError."""
    path.mkdir(parents=True, exist_ok=True)
    give_to_job_user(path)


def give_to_job_user(path: Path) -> None:
    """Make the user of jobs the owner of a file. Without root, as on a stand-in, the file keeps its owner."""
    if not os.geteuid():
        os.chown(path, JOB_UID, JOB_UID, follow_symlinks=False)


def belongs_to_job_user(path: Path) -> bool:
    """Whether the user of jobs owns a file; without root, whether this process does, as after `give_to_job_user`."""
    return path.lstat().st_uid == (os.geteuid() or JOB_UID)


def end_job_user_processes() -> None:
    """End every process of the user of jobs, also those that left the unit or the Slurm job that started them.

    Raises:
        OSError: Processes remain.
    """
    end = time.monotonic() + ENDING_SECONDS
    while left := _processes():
        if time.monotonic() > end:
            raise OSError(f"processes of {JOB_USER} do not end: {', '.join(left[:3])}")
        # One call signals all processes of the user, so that none escapes by starting another one.
        run("runuser", "-u", JOB_USER, "--", "sh", "-c", "kill -s KILL -- -1", seconds=ENDING_SECONDS)
        time.sleep(0.1)


def _processes() -> list[str]:
    """The IDs of the user's processes. A zombie is one only if it has other threads."""
    found: list[str] = []
    for folder in files.path("proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text(errors="replace")
        except OSError:
            continue
        values = dict(re.findall(r"^(State|Threads|Uid):\s*(.*)$", status, re.MULTILINE))
        is_zombie = values.get("State", "").startswith("Z") and values.get("Threads") in ("0", "1")
        if str(JOB_UID) in values.get("Uid", "").split() and not is_zombie:
            found.append(folder.name)
    return found


def delete_all_but_newest(kept: Iterable[Path], disk: Path) -> None:
    """Delete all of these folders but the newest, and those of the newest KEPT_FOLDERS within half of the disk."""
    room = shutil.disk_usage(disk).total // 2
    for number, folder in enumerate(sorted(kept, key=lambda path: path.lstat().st_ctime_ns, reverse=True)):
        room -= _size(folder)
        if number and (number >= KEPT_FOLDERS or room < 0):
            delete_folder(folder)


def delete_folder(folder: Path) -> None:
    """Delete a folder that a job may have filled. Python's rmtree and walk fail at a depth of 1,000 folders."""
    run("rm", "--recursive", "--force", "--", str(folder), seconds=DELETING_SECONDS)


def _size(folder: Path) -> int:
    """The size on the disk in bytes. It does not include what cannot be read."""
    found = re.match(
        r"\d+", run("du", "--summarize", "--block-size=1", "--", str(folder), seconds=DELETING_SECONDS).out
    )
    return int(found[0]) if found else 0
