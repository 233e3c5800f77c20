"""The purchase option of instances."""

from dataclasses import dataclass

from aws_cdk import Annotations
from constructs import Construct

from trainium_cdk.checks import check, check_known, form
from trainium_cdk.fleet.cluster_names import first_owner
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.plan.rules.nodes import reservation_given, usage_class_is_supported
from trainium_core.plan.values import CapacityKind


@dataclass(frozen=True)
class Capacity:
    """The purchase option of instances: `on_demand()`, `spot()`, `capacity_block(id)` or `reservation(id)`.

    Attributes:
        kind: `on-demand`, `spot`, `capacity-block` or `reservation`.
        reservation_id: ID of the Capacity Block or Capacity Reservation, or None.

    Raises:
        PropsError: The ID is missing, invalid, a CDK token, or specified for another option.

    Example:

        block = Capacity.capacity_block("cr-0123456789abcdef0")
        reserved = Capacity.reservation("cr-0123456789abcdef0")
        interruptible, ordinary = Capacity.spot(), Capacity.on_demand()
    """

    kind: CapacityKind
    reservation_id: str | None

    def __post_init__(self) -> None:
        reservation = self.reservation_id
        check_known("Capacity", "reservation_id", reservation, why="a reservation must exist before the deployment")
        check(
            "Capacity",
            form("capacity", self.kind, field="kind"),
            form("reservation_id", reservation),
            reservation_given(self.kind, reservation, field="reservation_id"),
        )

    @property
    def block_id(self) -> str | None:
        """ID of the Capacity Block; None for other purchase options."""
        return self.reservation_id if self.kind == "capacity-block" else None

    @property
    def settings(self) -> dict[str, object]:
        """The values by the keys of their settings."""
        return {"capacity": self.kind, "reservation_id": self.reservation_id}

    @staticmethod
    def on_demand() -> "Capacity":
        """On-Demand Instances, billed per second; the launch fails if EC2 has none available."""
        return Capacity("on-demand", None)

    @staticmethod
    def spot() -> "Capacity":
        """Spot Instances, which EC2 may reclaim with two minutes' notice."""
        return Capacity("spot", None)

    @staticmethod
    def capacity_block(reservation_id: str) -> "Capacity":
        """Instances in a Capacity Block that you have purchased.

        Args:
            reservation_id: Its ID, such as cr-0123456789abcdef0.
        """
        return Capacity("capacity-block", reservation_id)

    @staticmethod
    def reservation(reservation_id: str) -> "Capacity":
        """Instances in an On-Demand Capacity Reservation.

        Args:
            reservation_id: Its ID, such as cr-0123456789abcdef0.
        """
        return Capacity("reservation", reservation_id)


def warn_if_reservation_is_shared(construct: Construct, capacity: Capacity) -> None:
    """Add a warning if an earlier construct of the app launches into the same reservation."""
    if capacity.reservation_id is None:
        return
    other = first_owner(construct, "reservation", capacity.reservation_id)
    if other != construct.node.path:
        Annotations.of(construct).add_warning_v2(
            "trn:capacity.shared",
            f"{other} launches into {capacity.reservation_id} too: it must have instances for the nodes of both",
        )


def checked_capacity(
    construct: Construct, capacity: Capacity | None, kind: InstanceType, catalog: Catalog | None
) -> Capacity:
    """The given purchase option, by default on demand. Raises PropsError if the type does not support it."""
    chosen = capacity or Capacity.on_demand()
    check(construct, usage_class_is_supported(kind, chosen.kind, catalog or builtin_catalog(), field="capacity"))
    return chosen
