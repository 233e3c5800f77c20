"""The part of a job that runs on this node: one transient unit of systemd, as the user of jobs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from pathlib import Path
from typing import Any

from trainium_wire.job import STORED_CODES

from . import files, job_cache, job_user
from .job_user import JOB_USER
from .programs import run
from .self_test import CACHE

UNIT = "trn-job.service"
MEMORY = "var/lib/trn/job.json"
"""File with the last attempt. It persists over a reboot, so that an attempt is not started again."""
LAUNCH = "run/trn/launch.json"
FOLDER = "trn-jobs"
SECONDS = 30
PROPERTIES = (
    # The user of jobs has no sudo, and no program gives it more rights than it has.
    "NoNewPrivileges=yes",
    "RestrictSUIDSGID=yes",
    # The operators' files are hidden (/root is for root only). Over the system bus, a job could start processes outside
    # of the unit, and Python modules in the folder of the self-test would run there at the next test.
    "InaccessiblePaths=-/home",
    "InaccessiblePaths=-/run/dbus",
    f"InaccessiblePaths=-/{CACHE}",
    # The next job finds nothing of this one in the folders that every user may write: /tmp, /var/tmp, /dev/shm, message
    # queues, and those of Debian, cloud-init and Ubuntu.
    "PrivateTmp=yes",
    "TemporaryFileSystem=/run/lock:mode=1777",
    "InaccessiblePaths=-/run/cloud-init/tmp",
    "InaccessiblePaths=-/var/crash",
    "RemoveIPC=yes",
    "KillMode=control-group",
    "TimeoutStopSec=30",
    "LimitMEMLOCK=infinity",
    # If the kernel kills a process for lack of memory, the others report it.
    "OOMPolicy=continue",
    # The program notifies systemd four times in this interval. A frozen program (SIGSTOP) would block the node.
    "WatchdogSec=120",
    "NotifyAccess=main",
)


_STORED = "|".join(f"exited:{code}" for code in STORED_CODES)
_KEEP = f'case $EXIT_CODE:$EXIT_STATUS in {_STORED});; *) chmod 750 "$0" && chown root "$0";; esac'
"""Run by root when the unit has ended: a folder that belongs to root is kept. Jobs can read it, such as `trn cp`. The
folder of a program that was killed is kept, too: it may have said that results are only there."""


class JobUnit:
    """The attempt that this node has started, and whether it is running.

    Attributes:
        is_ending: Whether, at the last check, the program had ended and the unit had not.
    """

    def __init__(self) -> None:
        self.is_ending = False
        self._descriptor: int | None = None

    def begun(self) -> tuple[str, int, bool]:
        """The job and attempt that were started last, and whether in this boot."""
        try:
            memory = json.loads(files.read(MEMORY))
            return str(memory["job"]), int(memory["attempt"]), memory["boot"] == _boot()
        except (ValueError, LookupError, TypeError):
            return "", 0, True

    def is_active(self) -> bool:
        """Whether an attempt is running here, or stores its results."""
        shown = run("systemctl", "show", "--property=ActiveState,MainPID", UNIT, seconds=SECONDS).out
        found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        active = found.get("ActiveState") in ("active", "activating", "deactivating", "reloading")
        process = int(found.get("MainPID") or 0)
        self.is_ending = active and not process
        if active and process and self._descriptor is None:
            # The process may have ended in the meantime.
            with contextlib.suppress(OSError):
                self._descriptor = os.pidfd_open(process)
        return active

    def wait(self, seconds: float) -> bool:
        """Wait until the time is over or the program of the attempt ends. Returns whether the program ended."""
        if self._descriptor is None:
            time.sleep(seconds)
            return False
        ended = bool(select.select([self._descriptor], [], [], seconds)[0])
        if ended:
            os.close(self._descriptor)
            self._descriptor = None
        return ended

    def start(self, job: str, attempt: int, launch: dict[str, Any]) -> None:
        """Start an attempt.

        Args:
            job: Job ID.
            attempt: Number of the attempt.
            launch: Content of the launch file, without `folder`.

        Raises:
            OSError: The attempt cannot start. The message is a sentence.
        """
        if not job_user.job_user_exists():
            raise OSError(f"there is no user {JOB_USER}, and jobs do not run as root")
        # Before the start, so that a restarted watch does not start the attempt twice.
        files.write(MEMORY, json.dumps({"job": job, "attempt": attempt, "boot": _boot()}))
        job_user.end_job_user_processes()
        folder = _new_folder(f"{job}-{attempt}")
        if launch.get("compile_cache"):
            job_cache.make_folder()
        files.write(LAUNCH, json.dumps({**launch, "folder": str(folder)}))
        started = run(
            *("systemd-run", f"--unit={UNIT}", "--collect", "--quiet", f"--uid={JOB_USER}"),
            *(f"--property={each}" for each in PROPERTIES),
            f"--property=ExecStopPost=+/bin/sh -c '{_KEEP}' {folder}",
            # Its home is the folder of the attempt, so that no other job runs what it writes to ~/.profile.
            *("env", f"HOME={folder}", f"PYTHONPATH={files.path('opt/trn')}"),
            *("python3", "-m", "trn_job", str(files.path(LAUNCH))),
            seconds=SECONDS,
        )
        if started.error:
            raise OSError(started.error)


def _new_folder(name: str) -> Path:
    """An empty folder of the user of jobs, on the local disks if there are any.

    Folders of earlier attempts are deleted, except the newest with results that have not reached S3.
    """
    parent = _disk() / FOLDER
    parent.mkdir(mode=0o755, exist_ok=True)
    # Every user may create folders on the local disks.
    if parent.is_symlink() or parent.stat().st_uid != os.geteuid():
        raise OSError(f"{parent} is a link or not owned by root: remove it")
    kept: list[Path] = []
    for old in parent.iterdir():
        if job_user.belongs_to_job_user(old):
            job_user.delete_folder(old)
        else:
            kept.append(old)
    job_user.delete_all_but_newest(kept, parent)
    folder = parent / name
    folder.mkdir(mode=0o700)
    job_user.give_to_job_user(folder)
    return folder


def _disk() -> Path:
    scratch = files.plan().get("scratch")
    if scratch:
        path = files.path(scratch.lstrip("/"))
        if path.exists() and os.path.ismount(path.resolve()):
            return path
    return files.path("var/lib")


def _boot() -> str:
    return files.read("proc/sys/kernel/random/boot_id").strip()
