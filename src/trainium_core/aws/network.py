"""Availability Zones, placement groups, and VPCs with their subnets, routes and endpoints, from EC2."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_RUNNING = ("pending", "running")
_ANYWHERE = "0.0.0.0/0"
_NO_OPTIONS = "default"
"""The DhcpOptionsId of a VPC without DHCP options (EC2 API Reference, AssociateDhcpOptions)."""

_SERVERS_WITHOUT_OPTIONS = ("169.254.169.253",)
"""The DNS server of Nitro instances in a VPC without DHCP options (Amazon VPC User Guide, DHCP option set concepts)."""

_TARGETS = (
    "NatGatewayId",
    "GatewayId",
    "TransitGatewayId",
    "NetworkInterfaceId",
    "VpcPeeringConnectionId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "CoreNetworkArn",
)
"""Fields of a route in DescribeRouteTables that contain its target."""


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


class AwsNetwork(AwsService):
    """Reads networks of one region. Methods for one resource return None if it does not exist.

    Methods raise UnavailableError if a request fails or is denied.
    """

    def placement_group(self, name: str) -> PlacementGroup | None:
        with read_errors("ec2:DescribePlacementGroups", absent=("InvalidPlacementGroup.Unknown",)):
            answer = self.client("ec2").describe_placement_groups(GroupNames=[name])
            for entry in answer["PlacementGroups"]:
                return PlacementGroup(name=name, strategy=entry["Strategy"], state=entry["State"])
        return None

    def zones_offering(self, instance_type: str) -> Collection[str]:
        """The IDs of the region's Availability Zones that offer the type."""
        with read_errors("ec2:DescribeInstanceTypeOfferings"):
            answer = self.client("ec2").describe_instance_type_offerings(
                LocationType="availability-zone-id",
                Filters=[{"Name": "instance-type", "Values": [instance_type]}],
            )
            return {offering["Location"] for offering in answer["InstanceTypeOfferings"]}

    def subnet(self, subnet_id: str) -> Subnet | None:
        with read_errors("ec2:DescribeSubnets", absent=("InvalidSubnetID.",)):
            for entry in self.client("ec2").describe_subnets(SubnetIds=[subnet_id])["Subnets"]:
                return Subnet(
                    subnet_id=subnet_id,
                    vpc_id=entry["VpcId"],
                    zone_id=entry["AvailabilityZoneId"],
                    free_addresses=entry["AvailableIpAddressCount"],
                )
        return None

    def addresses_in_use(self, cluster: str, *, subnet_id: str) -> int:
        """The number of private IPv4 addresses of the cluster's pending and running instances in the subnet."""
        filters = [_filter(f"tag:{CLUSTER_TAG}", cluster), _filter("instance-state-name", *_RUNNING)]
        with read_errors("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances")
            return sum(
                len(interface.get("PrivateIpAddresses", []))
                for page in pages.paginate(Filters=filters)
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
                for interface in instance.get("NetworkInterfaces", [])
                if interface["SubnetId"] == subnet_id
            )

    def vpc(self, vpc_id: str) -> Vpc | None:
        with read_errors("ec2:DescribeVpcs", absent=("InvalidVpcID.",)):
            vpcs = self.client("ec2").describe_vpcs(VpcIds=[vpc_id])["Vpcs"]
            return self._with_dns(vpcs[0]) if vpcs else None
        return None

    def vpcs_excluding(self, cluster: str) -> int:
        """The number of VPCs in the region without the tag trn:cluster of the cluster."""
        with read_errors("ec2:DescribeVpcs"):
            pages = self.client("ec2").get_paginator("describe_vpcs")
            return sum(_tagged_cluster(vpc) != cluster for page in pages.paginate() for vpc in page["Vpcs"])

    def route_table(self, *, subnet_id: str, vpc_id: str) -> RouteTable | None:
        """The subnet's route table, else the main route table of its VPC; None if EC2 returns neither."""
        own = (_filter("association.subnet-id", subnet_id),)
        main = (_filter("vpc-id", vpc_id), _filter("association.main", "true"))
        with read_errors("ec2:DescribeRouteTables"):
            for filters in (own, main):
                for entry in self.client("ec2").describe_route_tables(Filters=[*filters])["RouteTables"]:
                    return RouteTable(route_table_id=entry["RouteTableId"], default_target=_default_target(entry))
        return None

    def endpoints(self, vpc_id: str) -> Sequence[VpcEndpoint]:
        """The available endpoints of a VPC."""
        with read_errors("ec2:DescribeVpcEndpoints"):
            pages = self.client("ec2").get_paginator("describe_vpc_endpoints")
            return [
                _endpoint(entry)
                for page in pages.paginate(Filters=[_filter("vpc-id", vpc_id)])
                for entry in page["VpcEndpoints"]
                if entry["State"].casefold() == "available"
            ]

    def _with_dns(self, entry: Mapping[str, Any]) -> Vpc:
        vpc_id: str = entry["VpcId"]
        servers = self._dns_servers(entry["DhcpOptionsId"])
        with read_errors("ec2:DescribeVpcAttribute"):
            describe = self.client("ec2").describe_vpc_attribute
            return Vpc(
                vpc_id=vpc_id,
                dns_support=describe(VpcId=vpc_id, Attribute="enableDnsSupport")["EnableDnsSupport"]["Value"],
                dns_hostnames=describe(VpcId=vpc_id, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"],
                cidr=entry["CidrBlock"],
                dns_servers=servers,
            )

    def _dns_servers(self, options_id: str) -> Sequence[str] | None:
        if options_id == _NO_OPTIONS:
            return _SERVERS_WITHOUT_OPTIONS
        with read_errors("ec2:DescribeDhcpOptions", absent=("InvalidDhcpOptionID.",)):
            for entry in self.client("ec2").describe_dhcp_options(DhcpOptionsIds=[options_id])["DhcpOptions"]:
                options = {option["Key"]: option["Values"] for option in entry["DhcpConfigurations"]}
                return [value["Value"] for value in options.get("domain-name-servers", [])]
        return None


def _filter(name: str, *values: str) -> Mapping[str, Any]:
    return {"Name": name, "Values": [*values]}


def _tagged_cluster(entry: Mapping[str, Any]) -> str | None:
    return tag_values(entry.get("Tags")).get(CLUSTER_TAG)


def _default_target(table: Mapping[str, Any]) -> str | None:
    """The target of the default route. A route to a deleted target, in the state `blackhole`, does not count."""
    for route in table.get("Routes", []):
        if route.get("DestinationCidrBlock") == _ANYWHERE and route.get("State", "active") == "active":
            return next((route[target] for target in _TARGETS if route.get(target)), "an unknown target")
    return None


def _endpoint(entry: Mapping[str, Any]) -> VpcEndpoint:
    kind = entry["VpcEndpointType"].casefold()
    return VpcEndpoint(
        service=entry["ServiceName"].rsplit(".", 1)[-1],
        kind=kind if kind in ("gateway", "interface") else "other",
        private_dns=entry.get("PrivateDnsEnabled", False),
        route_table_ids=tuple(entry.get("RouteTableIds", ())),
        cluster=_tagged_cluster(entry),
        policy=entry.get("PolicyDocument"),
    )
