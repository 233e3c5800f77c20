"""A network in memory. By default, a VPC with a NAT gateway and a subnet with free addresses, beside one other VPC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from trainium_core.aws.network import RouteTable, Subnet, Vpc, VpcEndpoint
from trainium_runtime.quota import Quota

VPC = Vpc(
    vpc_id="vpc-0123456789abcdef0",
    dns_support=True,
    dns_hostnames=True,
    cidr="10.7.0.0/16",
    dns_servers=["AmazonProvidedDNS"],
)
SUBNET = Subnet(subnet_id="subnet-0123456789abcdef0", vpc_id=VPC.vpc_id, zone_id="usw2-az4", free_addresses=251)
TABLE = RouteTable(route_table_id="rtb-0123456789abcdef0", default_target="nat-0123456789abcdef0")


@dataclass(kw_only=True)
class FakeNetwork:
    found_vpc: Vpc | None = VPC
    found_subnet: Subnet | None = SUBNET
    other_subnets: Mapping[str, Subnet] = field(default_factory=dict[str, Subnet])
    table: RouteTable | None = TABLE
    vpc_endpoints: Sequence[VpcEndpoint] = ()
    addresses_held: int = 0
    other_vpcs: int = 1
    vpc_limit: float | None = 5

    @property
    def network(self) -> Self:
        return self

    def quota(self, service: str, code: str) -> Quota | None:
        if service != "vpc":
            return super().quota(service, code)
        self._check_available("vpc quota")
        return None if self.vpc_limit is None else Quota(code=code, name="VPCs per Region", limit=self.vpc_limit)

    def subnet(self, subnet_id: str) -> Subnet | None:
        self._check_available("subnet")
        return self.other_subnets.get(subnet_id) if subnet_id != SUBNET.subnet_id else self.found_subnet

    def addresses_in_use(self, cluster: str, *, subnet_id: str) -> int:
        assert (cluster, subnet_id) == ("trn-pilot", SUBNET.subnet_id)
        self._check_available("addresses")
        return self.addresses_held

    def vpc(self, vpc_id: str) -> Vpc | None:
        assert vpc_id == VPC.vpc_id
        self._check_available("vpc")
        return self.found_vpc

    def vpcs_excluding(self, cluster: str) -> int:
        assert cluster == "trn-pilot"
        self._check_available("vpcs")
        return self.other_vpcs

    def route_table(self, *, subnet_id: str, vpc_id: str) -> RouteTable | None:
        assert (subnet_id, vpc_id) == (SUBNET.subnet_id, VPC.vpc_id)
        self._check_available("routes")
        return self.table

    def endpoints(self, vpc_id: str) -> Sequence[VpcEndpoint]:
        assert vpc_id == VPC.vpc_id
        self._check_available("endpoints")
        return self.vpc_endpoints
