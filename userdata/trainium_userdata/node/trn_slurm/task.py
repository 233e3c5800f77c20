"""This node's part of a job: one task of Slurm, which runs as the user who submitted the job."""

from __future__ import annotations

import ctypes
import os
import pwd
from pathlib import Path
from typing import Any

from trainium_wire.job import RESULTS_LOST_CODE
from trn_job.attempt import NodeAttempt
from trn_job.launch import Launch
from trn_node import files, job_cache, job_user
from trn_node.notices import NOTICE
from trn_node.secret_values import secret_value

from . import slurm
from .attempts import Attempts

PR_SET_NO_NEW_PRIVS = 38
"""prctl(2)."""
CACHE_FOLDER = "compile-cache"


def run(attempts: Attempts, number: int) -> int:
    """Run this node's part of an attempt. Returns 0 even after a failure, which is recorded in S3.

    After another exit code, Slurm would end tasks on other nodes, which still store their results.

    Raises:
        OSError: The attempt was not begun, or its folder cannot be created.
    """
    start = attempts.store.read(attempts.attempt(number).start)
    if start is None:
        raise OSError(f"attempt {number} was not begun")
    # As in the unit of a job on a plain cluster: no program gives the job more rights than its user has.
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    place = _new_folder(f"{attempts.spec.id}-{number}")
    if not Path.home().is_dir():
        # The user has no home. This one is new, so that no other job runs what this job writes to ~/.profile.
        os.environ["HOME"] = str(place)
    launch = _launch(attempts, number, start, place)
    if NodeAttempt(launch, attempts.store, secret_value, slurm.why_ended).run() != RESULTS_LOST_CODE:
        job_user.delete_folder(place)
    return 0


def _launch(attempts: Attempts, number: int, start: dict[str, Any], place: Path) -> Launch:
    spec = attempts.spec
    environment = job_cache.framework_environment(spec.stack)
    cache = job_cache.compile_cache(spec.stack) if spec.compile_cache else None
    return Launch(
        url=attempts.url,
        spec=spec,
        attempt=number,
        rank=int(os.environ["SLURM_NODEID"]),
        nodes=start["nodes"],
        folder=str(place),
        resume_from=start["resume_from"],
        resume_job=start["resume_job"],
        seconds_left=start["seconds_left"],
        notice_file=str(files.path(NOTICE)),
        venv=str(environment[1]) if environment else None,
        compile_cache={**cache, "folder": str(_own_folder(CACHE_FOLDER))} if cache else None,
    )


def _new_folder(name: str) -> Path:
    folder = _own_folder(name)
    job_user.delete_folder(folder)
    old = [path for path in folder.parent.iterdir() if path.name != CACHE_FOLDER]
    job_user.delete_all_but_newest(old, folder.parent)
    folder.mkdir(mode=0o700)
    return folder


def _own_folder(name: str) -> Path:
    """A folder of this user, on the local disks if there are any. Raises OSError if it is a link or of another user."""
    scratch = files.plan().get("scratch")
    disk = files.path(scratch.lstrip("/")) if scratch else None
    parent = disk if disk and disk.is_mount() else files.path("var/tmp")
    parent = parent / f"trn-slurm-{pwd.getpwuid(os.getuid()).pw_name}"
    for folder in (parent, parent / name):
        folder.mkdir(mode=0o700, exist_ok=True)
        # Every user may create folders there.
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            raise OSError(f"{folder} is a link or belongs to another user: remove it")
    return parent / name
