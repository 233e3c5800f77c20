"""Ways to get the nodes of a plan, ranked: what could run when, where, for how much."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal

Prospect = Literal["now", "later", "unlikely", "unknown", "no"]

PROSPECTS: dict[Prospect, str] = {
    "now": "could start now",
    "later": "could start later",
    "unlikely": "for sale, but very unlikely",
    "unknown": "AWS gave no answer",
    "no": "not to be had",
}
"""What each prospect means, the best first."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class CapacityOption:
    """One way to get the nodes, in one zone; in the region as a whole where no zone is known.

    `capacity` is the plan's word for the way. `start` is None for at once. `hourly` is US dollars for one instance and
    `total` for all nodes over `hours`; None where it is not known. `paid_for` means that the nodes cost nothing more.
    `score` is AWS's spot placement score. `buys_from` is the offering to buy first, `reservation_id` what to launch in.
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
    buys_from: str | None = None
    reservation_id: str | None = None
    note: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a plan that takes this option, without their prefix."""
        chosen = {
            "capacity": self.capacity,
            "region": self.region,
            "availability_zone_id": self.zone_id,
            "reservation_id": self.reservation_id,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def ranked(options: Iterable[CapacityOption], *, start_by: datetime | None = None) -> tuple[CapacityOption, ...]:
    """The options, best first; one that starts after `start_by` is none.

    First what could start now, then what could start later, then what is unlikely, unknown and not to be had. Among
    these: what is paid for already, then the cheapest by the hour, since blocks differ in length; a price that is not
    known comes after those that are. Where prices are equal: the earlier start.
    """
    return tuple(sorted((_in_time(option, start_by) for option in options), key=_rank))


def outlook(options: Iterable[CapacityOption]) -> Literal["something", "nothing", "unknown"]:
    """Whether something could run, now or later. Nothing only if no question was left without an answer."""
    prospects = {option.prospect for option in options}
    if prospects & {"now", "later"}:
        return "something"
    return "nothing" if prospects and "unknown" not in prospects else "unknown"


def _in_time(option: CapacityOption, start_by: datetime | None) -> CapacityOption:
    if start_by is None or option.start is None or option.start <= start_by or option.prospect != "later":
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
