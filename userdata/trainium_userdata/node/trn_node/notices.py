"""AWS's notices to an instance about its end: the EC2 user guide's pages on instance metadata."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from trainium_wire.formats import time_text

SPOT = "spot/instance-action"
LIFECYCLE = "autoscaling/target-lifecycle-state"
MAINTENANCE = "events/maintenance/scheduled"
REBALANCE = "events/recommendations/rebalance"
SECONDS = {
    # Spot gives two minutes, of which a job wants nearly all.
    SPOT: 5,
    # Without a lifecycle hook Auto Scaling gives none at all.
    LIFECYCLE: 5,
    # Known hours or days ahead.
    MAINTENANCE: 60,
    REBALANCE: 60,
}
"""How often each path of the metadata service is read."""


class Notice(NamedTuple):
    """at: when that happens, in seconds since 1970; 0: at any moment. ends: whether work is lost then."""

    kind: str
    reason: str
    at: float
    ends: bool = True


def iso(at: float) -> str:
    return time_text(datetime.fromtimestamp(at, timezone.utc)) if at else ""


def timestamp(text: str) -> float:
    """The time of a text, ISO 8601 or as HTTP has it. 0 when it is unreadable: then it may be at any moment."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        try:
            return parsedate_to_datetime(text).timestamp()
        except (ValueError, TypeError, IndexError):
            return 0


def parse(path: str, text: str | None) -> list[Notice]:
    """The notices at a path of the metadata service. Raises ValueError or LookupError when they are unreadable."""
    if not text:
        return []
    if path == LIFECYCLE:
        return [Notice("terminated", "Auto Scaling terminates it", 0)] if text.endswith("Terminated") else []
    raw: Any = json.loads(text)
    if path == SPOT:
        return [Notice("spot", f"EC2 takes this spot instance back: {raw['action']}", timestamp(raw["time"]))]
    if path == REBALANCE:
        return [
            Notice("rebalance", "EC2 may soon take this spot instance back", timestamp(raw["noticeTime"]), ends=False)
        ]
    return [
        Notice(
            event["Code"], f"EC2 has scheduled {event['Code']}: {event['Description']}", timestamp(event["NotBefore"])
        )
        for event in raw
        if event["State"] == "active"
    ]
