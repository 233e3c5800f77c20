"""Capacity that is reserved, for sale in blocks, or likely to be found on the spot market."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, Protocol

INSTANCE_PLATFORM = "Linux/UNIX"
"""What EC2 calls the images that nodes are launched from: Ubuntu and Amazon Linux alike."""


@dataclass(frozen=True, kw_only=True)
class BlockOffering:
    """A Capacity Block that AWS sells at this moment.

    `upfront_fee` is for all instances and the whole time, in `currency`. The length may be somewhat off the one asked
    for: every block ends at the same time of the day.
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
    """A Capacity Block that was bought, or an On-Demand Capacity Reservation. `capacity`: as in a plan.

    `state` and `platform` are AWS's words. `start` and `end` are None where there is none. `placement_group` is the
    name of the group that it was made in, if any.
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
        """How many instances can be launched in it once it is active: nothing runs in a scheduled one yet."""
        return self.total if self.state == "scheduled" else self.available


class Capacity(Protocol):
    def block_offerings(
        self, *, instance_type: str, instances: int, hours: int, latest_end: datetime | None = None
    ) -> Sequence[BlockOffering] | None:
        """None where AWS sells no Capacity Blocks of the type at all."""
        ...

    def spot_placement_scores(self, *, instance_type: str, instances: int) -> Mapping[str, int]:
        """The score of each zone of the region, by zone id."""
        ...

    def reservations(self, instance_type: str) -> Sequence[Reservation]:
        """Those that launch now or will: active and scheduled ones."""
        ...

    def reservation(self, reservation_id: str) -> Reservation | None: ...

    def instances_in_reservation(self, reservation_id: str, *, cluster: str) -> int:
        """How many nodes of a cluster run in it."""
        ...
