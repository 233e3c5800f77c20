"""Capacity that is reserved, sold in blocks, or likely available on the spot market."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, Protocol

INSTANCE_PLATFORM = "Linux/UNIX"
"""EC2's platform name of Ubuntu and Amazon Linux images."""


@dataclass(frozen=True, kw_only=True)
class BlockOffering:
    """A Capacity Block that AWS currently sells.

    Its duration may differ slightly from the requested one, because every block ends at the same time of day.

    Attributes:
        upfront_fee: For all instances and the whole duration, in `currency`.
    """

    offering_id: str
    instance_type: str
    instances: int
    zone_id: str
    start: datetime
    end: datetime
    upfront_fee: Decimal
    currency: str

    @property
    def hours(self) -> Decimal:
        return Decimal((self.end - self.start) / timedelta(hours=1))


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A purchased Capacity Block, or an On-Demand Capacity Reservation.

    Attributes:
        capacity: As in a plan.
        state: EC2's term, such as active.
        platform: EC2's term, such as Linux/UNIX.
        start: None if not set.
        end: None if not set.
        placement_group: Name of the group in which it was created, if any.
    """

    reservation_id: str
    capacity: Literal["capacity-block", "reservation"]
    state: str
    instance_type: str
    platform: str
    tenancy: str
    zone_id: str
    total: int
    available: int
    start: datetime | None = None
    end: datetime | None = None
    placement_group: str | None = None

    @property
    def launchable(self) -> int:
        """How many instances can be launched once it is active: a scheduled reservation has no instances yet."""
        return self.total if self.state == "scheduled" else self.available


class Capacity(Protocol):
    def block_offerings(
        self, *, instance_type: str, instances: int, hours: int, latest_end: datetime | None = None
    ) -> Sequence[BlockOffering] | None:
        """None if AWS sells no Capacity Blocks of the type."""
        ...

    def spot_placement_scores(self, *, instance_type: str, instances: int) -> Mapping[str, int]:
        """The score of each zone of the region, by zone ID."""
        ...

    def reservations(self, instance_type: str) -> Sequence[Reservation]:
        """Active and scheduled reservations."""
        ...

    def reservation(self, reservation_id: str) -> Reservation | None: ...

    def instances_in_reservation(self, reservation_id: str, *, cluster: str) -> int:
        """The number of a cluster's nodes in the reservation."""
        ...
