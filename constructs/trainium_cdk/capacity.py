"""How the instances of a fleet are bought."""

from dataclasses import dataclass

from trainium_core.plan.values import CapacityKind


@dataclass(frozen=True)
class Capacity:
    """How the instances of a fleet are bought: `on_demand()`, `spot()`, `capacity_block(id)` or `reservation(id)`.

    kind: as EC2 calls it, such as `on-demand`. reservation_id: what the instances are launched into, None for nothing.

    Example:

        bought = Capacity.capacity_block("cr-0123456789abcdef0")
        reserved = Capacity.reservation("cr-0123456789abcdef0")
        interruptible, ordinary = Capacity.spot(), Capacity.on_demand()
    """

    kind: CapacityKind
    reservation_id: str | None

    @staticmethod
    def on_demand() -> "Capacity":
        """On-Demand Instances, billed by the second, if EC2 has them when they are launched."""
        return Capacity("on-demand", None)

    @staticmethod
    def spot() -> "Capacity":
        """Spot Instances, which EC2 may reclaim with two minutes' notice."""
        return Capacity("spot", None)

    @staticmethod
    def capacity_block(reservation_id: str) -> "Capacity":
        """The instances of a Capacity Block that was bought before. reservation_id: such as cr-0123456789abcdef0."""
        return Capacity("capacity-block", reservation_id)

    @staticmethod
    def reservation(reservation_id: str) -> "Capacity":
        """The instances of an On-Demand Capacity Reservation. reservation_id: such as cr-0123456789abcdef0."""
        return Capacity("reservation", reservation_id)
