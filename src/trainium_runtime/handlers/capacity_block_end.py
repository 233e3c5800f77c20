"""EC2's warning that a Capacity Block ends, as a notice to every node."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.facts import facts
from trainium_wire.membership import Notice

DETAIL_TYPES = ("Capacity Block Expiration Warning", "Capacity Block Reservation Expiration Warning")
"""EC2's user guide has shown the event under both names: "Monitor Capacity Blocks using EventBridge"."""

KIND = "capacity-block-end"


def capacity_block_notice(event: Mapping[str, Any]) -> Notice | None:
    """The notice that an event comes to; None for any other event. Raises ValueError when it names no end."""
    if event.get("detail-type") not in DETAIL_TYPES:
        return None
    detail = event.get("detail") or {}
    end = datetime.fromisoformat(str(detail.get("end-date"))).astimezone(UTC)
    minutes = facts()["capacity_blocks"]["minutes_of_termination"]
    return Notice.of(
        KIND,
        end - timedelta(minutes=minutes),
        f"Capacity Block {detail.get('capacity-reservation-id')} ends at {end:%H:%M} UTC; "
        f"its instances are terminated from {minutes} minutes before",
    )
