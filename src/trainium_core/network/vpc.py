"""Zones, and the user's own networks in them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class PlacementGroup:
    """`strategy` and `state` are EC2's words, such as cluster and available."""

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
    """`dns_support`: AWS's resolver answers in it. `dns_hostnames`: private names of endpoints need that as well.

    `cidr`: its first block. `dns_servers`: what its DHCP options name, AmazonProvidedDNS or addresses; None if they are
    not there to be read.
    """

    vpc_id: str
    dns_support: bool
    dns_hostnames: bool
    cidr: str
    dns_servers: Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """`default_target` is the id that 0.0.0.0/0 leads to, such as nat-...; None without such a route."""

    route_table_id: str
    default_target: str | None


@dataclass(frozen=True, kw_only=True)
class VpcEndpoint:
    """An available endpoint. `service` is the short name, such as s3; `cluster` its tag trn:cluster, if any.

    `policy`: its endpoint policy as JSON; None if EC2 shows none.
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
        """Private addresses that the running nodes of a cluster hold in the subnet."""
        ...

    def vpc(self, vpc_id: str) -> Vpc | None: ...

    def vpcs_excluding(self, cluster: str) -> int:
        """How many VPCs there are, without those of the cluster."""
        ...

    def route_table(self, *, subnet_id: str, vpc_id: str) -> RouteTable | None:
        """The subnet's own route table, else the main one of its VPC."""
        ...

    def endpoints(self, vpc_id: str) -> Sequence[VpcEndpoint]: ...
