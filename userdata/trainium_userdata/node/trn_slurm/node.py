"""This node in Slurm: its address, why no job should start on it, and its drain."""

from __future__ import annotations

import json
import os
import sys
import time

from trn_node import files, record
from trn_node.notices import NOTICE, SIGNAL_SECONDS, timestamp
from trn_node.programs import run

SCONTROL_SECONDS = 30
LONGEST_REASON = 300


def address() -> str:
    """The rank of this node in the allocation, its instance ID, its address, and why no job should start here, if so.

    Raises OSError without a record.
    """
    made = record.read()
    if made is None:
        raise OSError("this node has no record: it was not verified")
    parts = [os.environ.get("SLURM_NODEID", "0"), made["instance_id"], made["address"], *known_problems()]
    return " ".join(" ".join(parts).split())


def known_problems() -> list[str]:
    """Why no further job should run here, as the watch has found; empty if it has found nothing."""
    made = record.read()
    if made and made["state"] == "failed":
        return [made["reason"] or "the node failed"]
    notice = _notice()
    return [notice] if notice else []


def _notice() -> str:
    """Why this node will be interrupted soon, by its notice; otherwise empty. A new job could not complete."""
    try:
        notice = json.loads(files.read(NOTICE))
        at = notice["at"]
        is_soon = not at or timestamp(at) - time.time() < SIGNAL_SECONDS
        return str(notice["reason"]) if is_soon else ""
    except (ValueError, LookupError, TypeError):
        return ""


def drain(found: list[str]) -> int:
    """Drain the node if there are problems. Slurm then starts no job on it; a running job continues. Returns 0 or 1."""
    if not found:
        return 0
    reason = f"trn: {'; '.join(found)}"[:LONGEST_REASON]
    print(reason, file=sys.stderr)
    name = os.environ.get("SLURMD_NODENAME") or (record.read() or {}).get("slurm_node", "")
    drained = run("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}", seconds=SCONTROL_SECONDS)
    if drained.error:
        print(drained.error, file=sys.stderr)
    return 1 if drained.error else 0
