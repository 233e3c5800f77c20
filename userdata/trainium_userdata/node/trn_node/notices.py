"""AWS's notices that an instance will be interrupted (EC2 user guide, instance metadata)."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from trainium_wire.formats import time_text

NOTICE = "run/trn/notice.json"
"""The file with the notice for programs on the node."""
SIGNAL_SECONDS = 900
"""How long before the end of a node its job is signalled: enough to save a large model, without losing much work."""

SPOT = "spot/instance-action"
LIFECYCLE = "autoscaling/target-lifecycle-state"
MAINTENANCE = "events/maintenance/scheduled"
SECONDS = {
    # Spot Instances get two minutes, and a job needs nearly all of them.
    SPOT: 5,
    # Without a lifecycle hook, Auto Scaling gives no time.
    LIFECYCLE: 5,
    # Known hours or days ahead.
    MAINTENANCE: 60,
}
"""Seconds between reads of each path of the metadata service."""


class InstanceNotice(NamedTuple):
    """A notice that the node will be interrupted: terminated, stopped or rebooted.

    Attributes:
        at: When, in seconds since 1970; 0: at any moment.
    """

    kind: str
    reason: str
    at: float


def iso(at: float) -> str:
    """A time in ISO 8601; empty for 0."""
    return time_text(datetime.fromtimestamp(at, timezone.utc)) if at else ""


def timestamp(text: str) -> float:
    """Parse a time in ISO 8601 or HTTP format; 0, at any moment, for anything else."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        try:
            return parsedate_to_datetime(text).timestamp()
        except (ValueError, TypeError, IndexError):
            return 0


def parse(path: str, text: str | None) -> list[InstanceNotice]:
    """The notices at a path of the metadata service. Raises ValueError or LookupError if they are invalid."""
    if not text:
        return []
    if path == LIFECYCLE:
        return (
            [InstanceNotice("terminated", "Auto Scaling terminates this instance", 0)]
            if text.endswith("Terminated")
            else []
        )
    raw: Any = json.loads(text)
    if path == SPOT:
        return [InstanceNotice("spot", f"EC2 reclaims this Spot Instance: {raw['action']}", timestamp(raw["time"]))]
    return [
        InstanceNotice(
            event["Code"], f"EC2 has scheduled {event['Code']}: {event['Description']}", timestamp(event["NotBefore"])
        )
        for event in raw
        if event["State"] == "active"
    ]
