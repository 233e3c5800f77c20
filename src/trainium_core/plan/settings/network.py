"""The network of the nodes: a new or existing VPC, its egress, and the network interfaces."""

from typing import Literal, get_args

from trainium_core.facts import facts
from trainium_core.setting_schema.forms import Address, Choice, ListOf, NetworkBlock, Pattern
from trainium_core.setting_schema.setting import resource_id, section, setting

Egress = Literal["vpc-endpoints", "nat-gateway", "none"]
EGRESS: tuple[Egress, ...] = get_args(Egress)
CardInterfaceType = Literal["efa", "efa-only"]
CARD_INTERFACE_TYPES: tuple[CardInterfaceType, ...] = get_args(CardInterfaceType)

DEFAULT_EGRESS: Egress = "nat-gateway"
_MOST_SERVERS: int = facts()["dns"]["most_servers"]


@section
class NetworkSettings:
    """The network of the nodes. `vpc_id`, `subnet_id` and `route_table_id` are None for a new VPC."""

    vpc_id: str | None = setting(
        "vpc_id",
        resource_id("vpc", "a VPC"),
        default=None,
        default_text="a new VPC",
        meaning="existing VPC for the nodes",
    )
    subnet_id: str | None = setting(
        "subnet_id",
        resource_id("subnet", "a subnet"),
        default=None,
        default_text="a new private subnet",
        meaning="subnet of the existing VPC, in a zone that offers the type",
    )
    route_table_id: str | None = setting(
        "route_table_id",
        resource_id("rtb", "a route table"),
        default=None,
        default_text="none: the subnet must already reach S3",
        meaning="route table of the existing subnet; an S3 gateway endpoint is added to it",
    )
    vpc_cidr: str = setting(
        "vpc_cidr",
        NetworkBlock(longest_prefix=24, shortest_prefix=facts()["subnet"]["largest_prefix"]),
        default="10.42.0.0/16",
        meaning="addresses of the new VPC",
    )
    egress: Egress | None = setting(
        "egress",
        Choice(EGRESS),
        default=None,
        default_text=f"{DEFAULT_EGRESS}; SageMakerTrainingStack: none",
        meaning="what nodes in the new VPC can reach: the internet; with vpc-endpoints, S3 and Systems Manager for "
        "`trn shell`; with none, only S3",
    )
    dns_servers: tuple[str, ...] = setting(
        "dns_servers",
        ListOf(Address(), f"up to {_MOST_SERVERS} IPv4 addresses, such as 10.0.0.2,10.0.1.2", most=_MOST_SERVERS),
        default=(),
        default_text="Amazon's resolver, which security groups do not filter",
        meaning="DNS resolvers of the existing VPC, from its DHCP options; nodes may reach them on port 53",
    )
    secondary_interface_type: CardInterfaceType = setting(
        "secondary_interface_type",
        Choice(CARD_INTERFACE_TYPES),
        default="efa",
        meaning="type of the interfaces on network cards after the first; efa-only uses no IP address",
        replaces_nodes=True,
    )
    placement_group: str | None = setting(
        "placement_group",
        Pattern(r"[\x21-\x7e ]{1,255}", "the name of an existing cluster placement group"),
        default=None,
        default_text="a new group for types with EFA on demand or spot, otherwise none",
        meaning="existing placement group, such as the group of a reservation",
    )

    @property
    def new_vpc_egress(self) -> Egress:
        """The egress of a new VPC."""
        return self.egress or DEFAULT_EGRESS

    @property
    def effective_egress(self) -> Egress | Literal["existing"]:
        """The egress of a new VPC; `existing` in an existing VPC."""
        return "existing" if self.vpc_id else self.new_vpc_egress
