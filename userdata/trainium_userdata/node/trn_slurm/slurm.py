"""The state of this process's job in Slurm, and the requests to requeue and to cancel the job."""

from __future__ import annotations

import json
import os
import re

from trainium_wire.job import NODE_LOST, STOPPED, TIME_LIMIT
from trn_node.programs import run

SECONDS = 20
"""Time limit of scontrol. Slurm kills processes 30 seconds after it has sent SIGTERM (KillWait)."""
COMPLETING = "COMPLETING"
ENDS = {
    "CANCELLED": (STOPPED, "scancel"),
    "TIMEOUT": (TIME_LIMIT, "the job reached Slurm's time limit"),
    "DEADLINE": (TIME_LIMIT, "the job's deadline in Slurm has passed"),
    "PREEMPTED": (NODE_LOST, "Slurm gave the job's nodes to another job"),
}


def why_ended() -> tuple[str, str]:
    """Why Slurm ends the processes of this job, as result and reason."""
    state = job_state()
    return ENDS.get(state, (NODE_LOST, f"Slurm ended the job's processes; the job is {state or 'in an unknown state'}"))


def job_state() -> str:
    """The state of the job, such as RUNNING; empty if Slurm does not answer."""
    shown = _show_job("--oneliner")
    found = re.search(r"\bJobState=(\w+)", shown)
    state = found[1] if found else ""
    # While the processes of the job end, only the JSON output has its end state, such as CANCELLED.
    return _state_beside(COMPLETING) or state if state == COMPLETING else state


def _state_beside(state: str) -> str:
    """The other state of the job in the JSON output; empty if there is none."""
    try:
        states = json.loads(_show_job("--json"))["jobs"][0]["job_state"]
    except (IndexError, KeyError, TypeError, ValueError):
        return ""
    return next((other for other in states if other != state), "")


def _show_job(form: str) -> str:
    shown = run("scontrol", form, "show", "job", job_id(), seconds=SECONDS)
    return "" if shown.error else shown.out


def requeue() -> str:
    """Have Slurm end the job and start it again. Returns an error, or an empty text."""
    return run("scontrol", "requeue", job_id(), seconds=SECONDS).error


def cancel() -> str:
    """Have Slurm end the job as cancelled. Returns an error, or an empty text.

    Otherwise, a job that was stopped would be FAILED in Slurm, and start jobs that depend on its failure.
    """
    return run("scancel", job_id(), seconds=SECONDS).error


def job_id() -> str:
    """Slurm's ID of this job, which a requeued job keeps."""
    return os.environ["SLURM_JOB_ID"]
