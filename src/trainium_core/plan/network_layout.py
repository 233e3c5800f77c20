"""The network interfaces of a node, and the number of addresses that they need."""

import ipaddress
from dataclasses import dataclass

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.facts import facts
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_core.plan.values import PlanValues


@dataclass(frozen=True, kw_only=True)
class NetworkInterface:
    """One network interface of the launch template.

    Attributes:
        card: Index of the network card.
        device: Device index on the card.
        interface_type: efa or efa-only; None for an ordinary ENA interface.
    """

    card: int
    device: int
    interface_type: str | None

    @property
    def has_address(self) -> bool:
        return self.interface_type != "efa-only"


def type_interfaces(kind: InstanceType, secondary: CardInterfaceType) -> tuple[NetworkInterface, ...]:
    """The interfaces of a node: one on each network card that supports EFA, else one ordinary interface.

    The interface on card 0 has device index 0 and carries IP traffic, so it is never efa-only.

    Args:
        kind: The instance type.
        secondary: Type of the interfaces on network cards after the first.
    """
    if not kind.efa_interfaces:
        return (NetworkInterface(card=0, device=0, interface_type=None),)
    return tuple(
        NetworkInterface(
            card=card,
            device=0 if card == 0 else facts()["network_cards"]["device_index"][secondary],
            interface_type="efa" if card == 0 else secondary,
        )
        for card in range(kind.efa_interfaces)
    )


def network_interfaces(plan: PlanValues) -> tuple[NetworkInterface, ...]:
    """The interfaces of one node of the plan."""
    return type_interfaces(plan.type, plan.network.secondary_interface_type)


def addresses_needed(plan: PlanValues) -> int:
    """The number of subnet addresses that all nodes need."""
    return plan.nodes * sum(interface.has_address for interface in network_interfaces(plan))


def node_subnet_prefix(plan: PlanValues) -> int:
    """Prefix length of a new VPC's private subnet: half of the block. The rest is for a public subnet."""
    return ipaddress.IPv4Network(plan.network.vpc_cidr).prefixlen + 1


def node_subnet_addresses(plan: PlanValues) -> int:
    """Usable addresses of the private subnet; in an existing VPC, of the largest subnet that a VPC can have."""
    prefix = facts()["subnet"]["largest_prefix"] if plan.network.vpc_id else node_subnet_prefix(plan)
    return 2 ** (32 - prefix) - facts()["subnet"]["reserved_addresses"]
