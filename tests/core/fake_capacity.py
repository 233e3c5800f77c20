"""Capacity in memory. By default nothing is reserved, no Capacity Block is for sale and spot scores are good."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Self

from tests.core.plans import RESERVATION
from trainium_core.aws.capacity import BlockOffering, ExtensionOffering, Reservation
from trainium_runtime.errors import UnavailableError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOMORROW = datetime(2026, 11, 22, 11, 30, tzinfo=UTC)

BLOCK = BlockOffering(
    offering_id="cb-0123456789abcdef0",
    instance_type="trn1.32xlarge",
    instances=1,
    zone_id="usw2-az4",
    start=TOMORROW,
    end=TOMORROW + timedelta(days=1),
    upfront_fee=Decimal("360.00"),
    currency="USD",
)
EXTENSION = ExtensionOffering(
    offering_id="cbe-0123456789abcdef0",
    start=BLOCK.end,
    end=BLOCK.end + timedelta(days=1),
    upfront_fee=Decimal("1360.00"),
    currency="USD",
)
ACTIVE = Reservation(
    reservation_id=RESERVATION,
    capacity="reservation",
    state="active",
    instance_type="trn1.32xlarge",
    platform="Linux/UNIX",
    tenancy="default",
    zone_id="usw2-az1",
    total=4,
    available=4,
    start=NOW - timedelta(days=1),
)
SCHEDULED_BLOCK = replace(
    ACTIVE,
    capacity="capacity-block",
    state="scheduled",
    available=0,
    start=TOMORROW,
    end=TOMORROW + timedelta(days=2),
)


@dataclass(kw_only=True)
class FakeCapacity:
    """Capacity that a test defines.

    Attributes:
        unavailable: The calls that fail: blocks, extensions, scores, reserved capacity, reservation, nodes in
            reservation.
        blocks: The Capacity Blocks for sale; None if AWS sells none of the type.
        extensions: The extensions for sale of each Capacity Block, by reservation ID.
        scores: Spot placement scores by zone ID.
        account_reservations: All reservations of the account.
        nodes_in_reservation: Number of the cluster's nodes in a reservation.
        latest_end: The argument of the last call of block_offerings.
    """

    unavailable: Collection[str] = ()
    blocks: Sequence[BlockOffering] | None = ()
    extensions: Mapping[str, Sequence[ExtensionOffering]] = field(
        default_factory=dict[str, Sequence[ExtensionOffering]]
    )
    scores: Mapping[str, int] = field(default_factory=lambda: {"usw2-az1": 9, "usw2-az4": 9})
    account_reservations: Sequence[Reservation] = ()
    nodes_in_reservation: int = 0
    latest_end: datetime | None = None

    @property
    def capacity(self) -> Self:
        return self

    def _check_available(self, question: str) -> None:
        if question in self.unavailable:
            raise UnavailableError(f"no answer about {question}")

    def block_offerings(
        self, *, instance_type: str, instances: int, hours: int, latest_end: datetime | None = None
    ) -> Sequence[BlockOffering] | None:
        assert instance_type
        assert instances
        assert hours
        self.latest_end = latest_end
        self._check_available("blocks")
        return self.blocks

    def extension_offerings(self, reservation_id: str, *, hours: int) -> Sequence[ExtensionOffering]:
        assert hours
        self._check_available("extensions")
        return self.extensions[reservation_id]

    def spot_placement_scores(self, *, instance_type: str, instances: int) -> Mapping[str, int]:
        assert instance_type
        assert instances
        self._check_available("scores")
        return self.scores

    def reservations(self, instance_type: str) -> Sequence[Reservation]:
        self._check_available("reserved capacity")
        return [reservation for reservation in self.account_reservations if reservation.instance_type == instance_type]

    def reservation(self, reservation_id: str) -> Reservation | None:
        self._check_available("reservation")
        return next((entry for entry in self.account_reservations if entry.reservation_id == reservation_id), None)

    def instances_in_reservation(self, reservation_id: str, *, cluster: str) -> int:
        assert reservation_id
        assert cluster
        self._check_available("nodes in reservation")
        return self.nodes_in_reservation
