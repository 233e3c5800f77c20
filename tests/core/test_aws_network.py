"""Calls about networks, against moto; where moto does not answer as AWS does, against botocore's Stubber."""

from typing import Any

import pytest

from tests.core.aws_stubs import REGION, stubbed
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.network import RouteTable, VpcEndpoint

pytestmark = pytest.mark.usefixtures("made_up_credentials")

OWN_TAGS = [{"Key": "trn:cluster", "Value": "mine"}]


@pytest.fixture
def vpc_id(ec2: Any) -> str:
    return ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]


@pytest.fixture
def subnet_id(ec2: Any, vpc_id: str) -> str:
    created = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.9.1.0/24", AvailabilityZoneId="usw2-az1")
    return created["Subnet"]["SubnetId"]


def test_missing_network_parts_are_none(account: AwsAccount) -> None:
    assert account.network.subnet("subnet-0123456789abcdef0") is None
    assert account.network.vpc("vpc-0123456789abcdef0") is None
    assert account.network.route_table(subnet_id="subnet-0123456789abcdef0", vpc_id="vpc-0123456789abcdef0") is None
    assert account.network.endpoints("vpc-0123456789abcdef0") == []


def test_vpc_resolvers_are_those_of_its_dhcp_options(account: AwsAccount, ec2: Any, vpc_id: str) -> None:
    named = {"Key": "domain-name-servers", "Values": ["10.1.0.2", "10.1.1.2"]}
    options = ec2.create_dhcp_options(DhcpConfigurations=[named, {"Key": "domain-name", "Values": ["example.com"]}])
    ec2.associate_dhcp_options(VpcId=vpc_id, DhcpOptionsId=options["DhcpOptions"]["DhcpOptionsId"])
    found = account.network.vpc(vpc_id)
    assert found
    assert found.dns_servers == ["10.1.0.2", "10.1.1.2"]


def test_vpcs_of_the_cluster_are_not_counted(account: AwsAccount, ec2: Any, vpc_id: str) -> None:
    before = account.network.vpcs_excluding("mine")
    ec2.create_tags(Resources=[vpc_id], Tags=OWN_TAGS)
    assert account.network.vpcs_excluding("mine") == before - 1
    assert account.network.vpcs_excluding("another") == before


def test_route_table_of_the_subnet_takes_precedence(account: AwsAccount, ec2: Any, vpc_id: str, subnet_id: str) -> None:
    own = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=own, SubnetId=subnet_id)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc_id)
    ec2.create_route(RouteTableId=own, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    expected = RouteTable(route_table_id=own, default_target=gateway)
    assert account.network.route_table(subnet_id=subnet_id, vpc_id=vpc_id) == expected


@pytest.mark.parametrize(
    ("route", "target"),
    [
        ({"NatGatewayId": "nat-1", "State": "active"}, "nat-1"),
        ({"EgressOnlyInternetGatewayId": "eigw-1", "State": "active"}, "an unknown target"),
        ({"NatGatewayId": "nat-1", "State": "blackhole"}, None),
    ],
)
def test_default_route_has_its_target_unless_deleted(route: dict[str, str], target: str | None) -> None:
    account, stub = stubbed("ec2")
    table = {"RouteTableId": "rtb-1", "Routes": [{"DestinationCidrBlock": "0.0.0.0/0", **route}]}
    stub.add_response("describe_route_tables", {"RouteTables": [table]})
    found = account.network.route_table(subnet_id="subnet-1", vpc_id="vpc-1")
    assert found == RouteTable(route_table_id="rtb-1", default_target=target)


def test_only_available_endpoints_count() -> None:
    account, stub = stubbed("ec2")
    ssm = {"VpcEndpointType": "Interface", "ServiceName": f"com.amazonaws.{REGION}.ssm", "PrivateDnsEnabled": True}
    found = [{**ssm, "State": "available"}, {**ssm, "State": "pendingAcceptance"}]
    stub.add_response("describe_vpc_endpoints", {"VpcEndpoints": found})
    assert account.network.endpoints("vpc-1") == [VpcEndpoint(service="ssm", kind="interface", private_dns=True)]


def test_cluster_addresses_are_those_of_its_interfaces_in_the_subnet() -> None:
    account, stub = stubbed("ec2")
    here = {"SubnetId": "subnet-1", "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.4"}]}
    efa_only, elsewhere = {"SubnetId": "subnet-1"}, {**here, "SubnetId": "subnet-2"}
    instances = [{"NetworkInterfaces": [here, efa_only]}, {"NetworkInterfaces": [here, elsewhere]}]
    filters = [
        {"Name": "tag:trn:cluster", "Values": ["mine"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    pages = [{"Reservations": [{"Instances": [instance]}]} for instance in instances]
    stub.add_response("describe_instances", {**pages[0], "NextToken": "more"}, {"Filters": filters})
    stub.add_response("describe_instances", pages[1], {"Filters": filters, "NextToken": "more"})
    assert account.network.addresses_in_use("mine", subnet_id="subnet-1") == 2
