"""What Slurm says of the job of this process, and the request to start it again."""

from __future__ import annotations

import os
import re

from trainium_wire.job import NODE_LOST, STOPPED, TIME_LIMIT
from trn_node.programs import run

SECONDS = 20
"""Slurm kills processes 30 seconds after it has asked them to end (KillWait)."""
ENDS = {
    "CANCELLED": (STOPPED, "scancel"),
    "TIMEOUT": (TIME_LIMIT, "Slurm's time limit of the job is over"),
    "DEADLINE": (TIME_LIMIT, "Slurm's deadline of the job is over"),
    "PREEMPTED": (NODE_LOST, "Slurm gave the job's nodes to another job"),
}


def why_ended() -> tuple[str, str]:
    """Why Slurm ends the processes of this job, as result and reason."""
    state = job_state()
    return ENDS.get(state, (NODE_LOST, f"Slurm ended the job's processes; it is {state or 'in an unknown state'}"))


def job_state() -> str:
    """Such as RUNNING; empty if Slurm does not answer."""
    shown = run("scontrol", "--oneliner", "show", "job", _job_id(), seconds=SECONDS)
    found = re.search(r"\bJobState=(\w+)", shown.out)
    return found[1] if found and not shown.error else ""


def requeue() -> str:
    """Have Slurm end the job and start it again. Returns what went wrong; empty if nothing did."""
    return run("scontrol", "requeue", _job_id(), seconds=SECONDS).error


def _job_id() -> str:
    return os.environ["SLURM_JOB_ID"]
