"""Ways to get a plan's nodes, ranked by availability, price and start."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal

Prospect = Literal["now", "later", "unlikely", "unknown", "no"]

PROSPECTS: dict[Prospect, str] = {
    "now": "could start now",
    "later": "could start later",
    "unlikely": "offered, but very unlikely to start",
    "unknown": "a request failed, or AWS returned no score or size",
    "no": "unavailable",
}
"""The meaning of each prospect, best first."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class CapacityOption:
    """One way to get the nodes, in one zone, or in the region if the zone is unknown.

    Attributes:
        capacity: The purchase option, as in a plan.
        prospect: A key of PROSPECTS.
        start: None for an immediate start.
        end: End of the block for sale, or the time until which the reservation is usable; None without an end.
        hours: Duration of the block for sale; how long the reservation is usable; for on-demand and spot, the requested
            hours. None if unknown or without an end.
        hourly: US dollars per instance and hour; None if unknown.
        total: US dollars for all nodes over `hours`; None if unknown.
        paid_for: Whether the instances are reserved already, so that nodes cost nothing in addition.
        score: AWS's spot placement score, from 1 to 10; None for other purchase options, or without a score.
        offering_id: ID of the Capacity Block offering to buy before the deployment, if any.
        reservation_id: The reservation to launch into, if any.
        note: Details, such as the reason why it is unavailable.
    """

    capacity: str
    region: str
    prospect: Prospect
    zone_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    hours: Decimal | None = None
    hourly: Decimal | None = None
    total: Decimal | None = None
    paid_for: bool = False
    score: int | None = None
    offering_id: str | None = None
    reservation_id: str | None = None
    note: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a plan that uses this option, without their prefix.

        A block for sale has no reservation ID: its purchase returns one.
        """
        chosen = {
            "capacity": self.capacity,
            "region": self.region,
            "availability_zone_id": self.zone_id,
            "reservation_id": self.reservation_id,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def ranked(options: Iterable[CapacityOption], *, start_by: datetime | None = None) -> tuple[CapacityOption, ...]:
    """The options, best first. Options that could start only after `start_by` become unavailable.

    The order is that of PROSPECTS. Options with the same prospect are sorted by price per hour, since blocks differ in
    length: reserved ones first, unknown prices last. At equal prices, the earlier start comes first.
    """
    return tuple(sorted((_in_time(option, start_by) for option in options), key=_rank))


def outlook(options: Iterable[CapacityOption]) -> Literal["something", "nothing", "unknown"]:
    """Whether the nodes could run, now or later. `nothing` if every option is unlikely or unavailable."""
    prospects = {option.prospect for option in options}
    if prospects & {"now", "later"}:
        return "something"
    return "nothing" if prospects and "unknown" not in prospects else "unknown"


def _in_time(option: CapacityOption, start_by: datetime | None) -> CapacityOption:
    if start_by is None or option.start is None or option.start <= start_by or option.prospect == "no":
        return option
    return replace(option, prospect="no", note=f"starts after {start_by:%Y-%m-%d}")


def _rank(option: CapacityOption) -> tuple[object, ...]:
    return (
        tuple(PROSPECTS).index(option.prospect),
        not option.paid_for,
        option.hourly is None,
        option.hourly or 0,
        option.start or _BEGINNING,
        option.region,
        option.zone_id or "",
        option.capacity,
    )
