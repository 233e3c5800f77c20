"""Zones and existing networks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class PlacementGroup:
    """`strategy` and `state` are EC2's terms, such as cluster and available."""

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
        dns_support: Whether Amazon's resolver answers.
        dns_hostnames: Also required for private names of endpoints.
        cidr: First block.
        dns_servers: DNS servers in its DHCP options, AmazonProvidedDNS or addresses; None if they cannot be read.
    """

    vpc_id: str
    dns_support: bool
    dns_hostnames: bool
    cidr: str
    dns_servers: Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """`default_target`: ID of the target of 0.0.0.0/0, such as nat-...; None without such a route."""

    route_table_id: str
    default_target: str | None


@dataclass(frozen=True, kw_only=True)
class VpcEndpoint:
    """An available endpoint.

    Attributes:
        service: Short name, such as s3.
        cluster: Its tag trn:cluster, if any.
        policy: Its endpoint policy as JSON; None if EC2 returns none.
    """

    service: str
    kind: Literal["gateway", "interface", "other"]
    private_dns: bool = False
    route_table_ids: Collection[str] = ()
    cluster: str | None = None
    policy: str | None = None


class Network(Protocol):
    def zones_offering(self, instance_type: str) -> Collection[str]: ...

    def subnet(self, subnet_id: str) -> Subnet | None: ...

    def addresses_of(self, cluster: str, *, subnet_id: str) -> int:
        """The number of private addresses that a cluster's running nodes use in the subnet."""
        ...

    def vpc(self, vpc_id: str) -> Vpc | None: ...

    def vpcs_excluding(self, cluster: str) -> int:
        """The number of VPCs, without those of the cluster."""
        ...

    def route_table(self, *, subnet_id: str, vpc_id: str) -> RouteTable | None:
        """The subnet's route table, else the main route table of its VPC."""
        ...

    def endpoints(self, vpc_id: str) -> Sequence[VpcEndpoint]: ...
