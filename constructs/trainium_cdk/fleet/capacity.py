"""How the instances of a fleet are bought."""

from dataclasses import dataclass

from constructs import Construct

from trainium_cdk.checks import check, check_known, form
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.plan.rules.nodes import reservation_given, usage_class_is_supported
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


def checked_capacity(
    construct: Construct, capacity: Capacity | None, kind: InstanceType, catalog: Catalog | None
) -> Capacity:
    """The capacity that is given, else on demand. Raises PropsError for a type that is not sold so, and a bad id."""
    bought = capacity or Capacity.on_demand()
    reservation = bought.reservation_id
    check_known(construct, "capacity", reservation or "", why="what a reservation holds is bought before")
    check(
        construct,
        usage_class_is_supported(kind, bought.kind, catalog or builtin_catalog(), field="capacity"),
        form("reservation_id", reservation, field="capacity"),
        reservation_given(bought.kind, reservation, field="capacity"),
    )
    return bought
