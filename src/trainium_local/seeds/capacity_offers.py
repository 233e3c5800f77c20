"""The Capacity Blocks for sale, and Spot placement scores: capacity_blocks.toml. Does not import moto."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

from trainium_local.seeds import table

UNNAMED_TYPES_SCORE = 3

_END_OF_BLOCKS = time(11, 30)  # UTC, for every block: EC2 documentation, Find and purchase Capacity Blocks
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A Capacity Block for sale.

    Attributes:
        offering_id: ID of the offering.
        instance_type: Type of the instances.
        instances: Number of instances.
        zone_id: ID of the Availability Zone.
        start: Start of the block.
        end: End of the block.
        fee: US dollars for all instances and the whole duration.
    """

    offering_id: str
    instance_type: str
    instances: int
    zone_id: str
    start: datetime
    end: datetime
    fee: Decimal


def offers(*, region: str, instance_type: str, instances: int, hours: int, now: datetime) -> list[Offer]:
    """Return the current offerings. An offering keeps its ID for the day."""
    return [
        _offer(row, days, instances=instances, hours=hours, now=now)
        for row in table("capacity_blocks")["offerings"]
        if (row["region"], row["instance_type"]) == (region, instance_type) and instances <= row["instances"]
        for days in row["starts_in_days"]
    ]


def is_sold(*, region: str, instance_type: str) -> bool:
    """Return False if AWS was observed to answer that it sells no blocks of the type in the region."""
    return region not in table("capacity_blocks")["not_sold"].get(instance_type, ())


def spot_placement_score(instance_type: str) -> int:
    return table("capacity_blocks")["spot_placement_scores"].get(instance_type, UNNAMED_TYPES_SCORE)


def _offer(row: Mapping[str, Any], days: int, *, instances: int, hours: int, now: datetime) -> Offer:
    if days:
        start = _blocks_end(now + days * _DAY)
        end = start + timedelta(hours=hours)
    else:
        # The block has started, so that nodes can launch immediately. It ends on the day of the requested end.
        start = now.replace(minute=0, second=0, microsecond=0)
        end = _blocks_end(now + timedelta(hours=hours))
    length = Decimal((end - start) / timedelta(hours=1))
    name = f"{row['zone_id']} {row['instance_type']} {instances} {hours} {start:%Y-%m-%d}"
    return Offer(
        offering_id="cb-" + sha256(name.encode()).hexdigest()[:17],
        instance_type=row["instance_type"],
        instances=instances,
        zone_id=row["zone_id"],
        start=start,
        end=end,
        fee=(Decimal(row["usd_per_hour"]) * instances * length).quantize(Decimal("0.01")),
    )


def _blocks_end(moment: datetime) -> datetime:
    return datetime.combine(moment, _END_OF_BLOCKS, tzinfo=moment.tzinfo)
