"""Availability Zones, placement groups and existing networks, as values and protocols.

The methods of the protocols raise UnavailableError if a request fails or is denied. Those that read one resource
return None if it does not exist.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class PlacementGroup:
    """A placement group.

    Attributes:
        strategy: EC2's term, such as cluster.
        state: EC2's term, such as available.
    """

    name: str
    strategy: str
    state: str


class PlacementGroups(Protocol):
    def placement_group(self, name: str) -> PlacementGroup | None: ...


@dataclass(frozen=True, kw_only=True)
class Subnet:
    subnet_id: str
    vpc_id: str
    zone_id: str
    free_addresses: int


@dataclass(frozen=True, kw_only=True)
class Vpc:
    """An existing VPC.

    Attributes:
        dns_support: Whether Amazon's DNS server answers.
        dns_hostnames: Whether instances get DNS hostnames; private DNS names of endpoints require both attributes.
        cidr: The primary IPv4 block.
        dns_servers: DNS servers of the DHCP option set, AmazonProvidedDNS or addresses; None if EC2 returns no set.
    """

    vpc_id: str
    dns_support: bool
    dns_hostnames: bool
    cidr: str
    dns_servers: Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """A route table.

    Attributes:
        default_target: ID of the target of 0.0.0.0/0, such as nat-...; None without an active default route.
    """

    route_table_id: str
    default_target: str | None


@dataclass(frozen=True, kw_only=True)
class VpcEndpoint:
    """An available endpoint.

    Attributes:
        service: Last part of the service name, such as s3, or dkr of ecr.dkr.
        private_dns: Whether the service's DNS name resolves to the endpoint in the VPC.
        cluster: Value of the tag trn:cluster, if any.
        policy: Endpoint policy as JSON; None if EC2 returns none.
    """

    service: str
    kind: Literal["gateway", "interface", "other"]
    private_dns: bool = False
    route_table_ids: Collection[str] = ()
    cluster: str | None = None
    policy: str | None = None


class Network(Protocol):
    def zones_offering(self, instance_type: str) -> Collection[str]:
        """The IDs of the region's Availability Zones that offer the type."""
        ...

    def subnet(self, subnet_id: str) -> Subnet | None: ...

    def addresses_in_use(self, cluster: str, *, subnet_id: str) -> int:
        """The number of private IPv4 addresses of the cluster's pending and running instances in the subnet."""
        ...

    def vpc(self, vpc_id: str) -> Vpc | None: ...

    def vpcs_excluding(self, cluster: str) -> int:
        """The number of VPCs in the region without the tag trn:cluster of the cluster."""
        ...

    def route_table(self, *, subnet_id: str, vpc_id: str) -> RouteTable | None:
        """The subnet's route table, else the main route table of its VPC; None if EC2 returns neither."""
        ...

    def endpoints(self, vpc_id: str) -> Sequence[VpcEndpoint]:
        """The available endpoints of a VPC."""
        ...
