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

    Its duration may differ from the requested one, because every block ends at the same time of day.

    Attributes:
        instances: Number of instances.
        upfront_fee: Price of all instances for the whole duration, in `currency`.
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
class ExtensionOffering:
    """An extension of a Capacity Block that AWS currently sells.

    Attributes:
        start: Start of the extension, which is the current end of the block.
        end: The new end of the block.
        upfront_fee: Price of all instances for the whole extension, in `currency`.
    """

    offering_id: str
    start: datetime
    end: datetime
    upfront_fee: Decimal
    currency: str


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A purchased Capacity Block, or an On-Demand Capacity Reservation.

    Attributes:
        capacity: The purchase option, as in a plan.
        state: EC2's state, such as active.
        platform: EC2's platform, such as Linux/UNIX.
        total: Number of instances.
        available: Number of instances that can be launched now.
        start: Start; None if EC2 returns none.
        end: End; None if it has none.
        placement_group: Name of the placement group in which it was created, if any.
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
        """Number of instances that can be launched, for a scheduled reservation once it is active."""
        return self.total if self.state == "scheduled" else self.available


class RegionCapacity(Protocol):
    """Capacity in a region. Methods raise UnavailableError if a request fails or is denied."""

    def block_offerings(
        self, *, instance_type: str, instances: int, hours: int, latest_end: datetime | None = None
    ) -> Sequence[BlockOffering] | None:
        """Capacity Blocks for sale; None if AWS sells none of the type.

        Args:
            instance_type: The instance type.
            instances: Number of instances in a block.
            hours: Duration of a block, one of block_durations().
            latest_end: Only blocks that end by this time. Default: any.
        """
        ...

    def extension_offerings(self, reservation_id: str, *, hours: int) -> Sequence[ExtensionOffering]:
        """Extensions for sale of a purchased Capacity Block, each `hours` long."""
        ...

    def spot_placement_scores(self, *, instance_type: str, instances: int) -> Mapping[str, int]:
        """The scores, from 1 to 10, by zone ID. EC2 may omit zones of the region."""
        ...

    def reservations(self, instance_type: str) -> Sequence[Reservation]:
        """Active and scheduled reservations of the type, including purchased Capacity Blocks."""
        ...

    def reservation(self, reservation_id: str) -> Reservation | None:
        """The reservation with this ID, in any state; None if it does not exist."""
        ...

    def instances_in_reservation(self, reservation_id: str, *, cluster: str) -> int:
        """Number of the cluster's instances in the reservation that are pending or running."""
        ...
