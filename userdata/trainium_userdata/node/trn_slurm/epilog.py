"""The epilog of a job: ends what the job left running, and does the quick part of the verification.

A node that does not pass it is drained with the reason. The watch drains a node that has failed or ends soon also
between jobs.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from trn_node import driver, files, hardware, neuron
from trn_node.check import Check
from trn_node.job_user import JOB_UID, end_job_user_processes
from trn_node.verify import error_counts

from .node import drain, known_problems

COUNTS = "run/trn/slurm-counters.json"
"""File with the error counters at the time when the node was verified in this boot."""
LEAVING_SECONDS, PAUSE_SECONDS = 30, 2
"""How long processes of the job may still hold NeuronCores, and the pause between checks."""


def remember() -> int:
    """Store the counters. Returns 0. Raises OSError."""
    files.write(COUNTS, json.dumps(error_counts()))
    return 0


def main() -> int:
    """Return 0 if the node is healthy or was drained. After another exit code, Slurm drains it without this reason."""
    try:
        # Nodes are exclusive: no other job of this user runs here.
        if os.environ.get("SLURM_JOB_UID") == str(JOB_UID):
            end_job_user_processes()
        found = problems(files.plan())
    except (OSError, ValueError, LookupError) as error:
        found = [f"the epilog cannot check the node: {error}"]
    return drain(found)


def problems(plan: dict[str, Any]) -> list[str]:
    """Why no further job should run here; empty for a healthy node."""
    known = known_problems()
    if known:
        return known
    checks = [driver.check_driver(plan).counted(plan)]
    if checks[0].ok:
        devices, error = neuron.list_devices(plan)
        end = time.monotonic() + LEAVING_SECONDS
        while (held := neuron.users(devices)) and time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)
            devices, error = neuron.list_devices(plan)
        if held:
            return [f"NeuronCores are still in use by {', '.join(held[:3])}"]
        checks += [check.counted(plan) for check in neuron.check_devices(plan, devices, error)]
        checks.append(_check_errors().counted(plan))
    return [check.problem or f"{check.name}: {check.found}" for check in checks if not check.ok]


def _check_errors() -> Check:
    before: dict[str, int] = json.loads(files.read(COUNTS) or "{}")
    return hardware.check_errors(before, error_counts(), hardware.unhealthy())
