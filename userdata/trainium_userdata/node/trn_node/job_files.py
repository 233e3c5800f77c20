"""What the programs of a node write about a job: one form for all of them."""

from __future__ import annotations

import time
from typing import Any


def attempt_folder(job: str, attempt: int) -> str:
    """Below the folder of all jobs."""
    return f"{job}/attempts/{attempt}"


def end_of_attempt(result: str, reason: str, instance_id: str, node: int | None) -> dict[str, Any]:
    """node: the rank of the node that writes it. What only the job's output can hold is None."""
    return {
        "result": result,
        "reason": reason,
        "traceback": None,
        "instance_id": instance_id,
        "node": node,
        "rank": None,
        "exit_code": None,
        "at": now(),
    }


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
