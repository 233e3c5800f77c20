"""Turns EC2's warning before the end of a Capacity Block into a notice for all nodes."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.pilot_clock import minutes_of_termination
from trainium_wire.membership import Notice

DETAIL_TYPES = ("Capacity Block Expiration Warning", "Capacity Block Reservation Expiration Warning")
"""The EC2 User Guide has documented both names, in "Monitor Capacity Blocks using EventBridge"."""

KIND = "capacity-block-end"


def capacity_block_notice(event: Mapping[str, Any], instance_types: Collection[str]) -> Notice | None:
    """The notice for a warning of EC2. None for any other event.

    Args:
        event: The event from EventBridge.
        instance_types: Types of the nodes, which are not in the event. Empty: not UltraServer types.

    Raises:
        ValueError: The warning has no valid end time.
    """
    if event.get("detail-type") not in DETAIL_TYPES:
        return None
    detail = event.get("detail") or {}
    end = datetime.fromisoformat(str(detail.get("end-date"))).astimezone(UTC)
    minutes = max(map(minutes_of_termination, instance_types or [""]))
    return Notice.of(
        KIND,
        end - timedelta(minutes=minutes),
        f"Capacity Block {detail.get('capacity-reservation-id')} ends at {end:%H:%M} UTC; "
        f"EC2 starts to terminate its instances {minutes} minutes before",
    )
