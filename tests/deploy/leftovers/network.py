"""Parts of a network."""

from collections.abc import Mapping
from typing import Any

from tests.deploy.leftovers.maker import Creator, Maker


def _nat_gateway(maker: Maker) -> str:
    ec2 = maker.client("ec2")
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    parameters = {"SubnetId": maker.create_subnet(), "AllocationId": address}
    made = ec2.create_nat_gateway(**parameters, TagSpecifications=maker.specification("natgateway"))
    return made["NatGateway"]["NatGatewayId"]


def _address(maker: Maker) -> str:
    parameters = {"Domain": "vpc", "TagSpecifications": maker.specification("elastic-ip")}
    return maker.client("ec2").allocate_address(**parameters)["AllocationId"]


def _endpoint(maker: Maker) -> str:
    ec2, subnet = maker.client("ec2"), maker.create_subnet()
    (vpc,) = [one["VpcId"] for one in ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]]
    parameters: dict[str, Any] = {"VpcId": vpc, "SubnetIds": [subnet], "VpcEndpointType": "Interface"}
    parameters["ServiceName"] = "com.amazonaws.us-west-2.ssm"
    made = maker.client("ec2").create_vpc_endpoint(**parameters, TagSpecifications=maker.specification("vpc-endpoint"))
    return made["VpcEndpoint"]["VpcEndpointId"]


def _interface(maker: Maker) -> str:
    parameters = {"SubnetId": maker.create_subnet(), "TagSpecifications": maker.specification("network-interface")}
    return maker.client("ec2").create_network_interface(**parameters)["NetworkInterface"]["NetworkInterfaceId"]


def _internet_gateway(maker: Maker) -> str:
    made = maker.client("ec2").create_internet_gateway(TagSpecifications=maker.specification("internet-gateway"))
    return made["InternetGateway"]["InternetGatewayId"]


def _security_group(maker: Maker) -> str:
    parameters = {"GroupName": "efa", "Description": "x", "VpcId": maker.create_vpc()}
    made = maker.client("ec2").create_security_group(
        **parameters, TagSpecifications=maker.specification("security-group")
    )
    return made["GroupId"]


def _acl(maker: Maker) -> str:
    parameters = {"VpcId": maker.create_vpc(), "TagSpecifications": maker.specification("network-acl")}
    return maker.client("ec2").create_network_acl(**parameters)["NetworkAcl"]["NetworkAclId"]


def _route_table(maker: Maker) -> str:
    parameters = {"VpcId": maker.create_vpc(), "TagSpecifications": maker.specification("route-table")}
    return maker.client("ec2").create_route_table(**parameters)["RouteTable"]["RouteTableId"]


def _subnet(maker: Maker) -> str:
    parameters = {"VpcId": maker.create_vpc(), "CidrBlock": f"10.{maker.number}.2.0/24"}
    made = maker.client("ec2").create_subnet(**parameters, TagSpecifications=maker.specification("subnet"))
    return made["Subnet"]["SubnetId"]


def _vpc(maker: Maker) -> str:
    parameters = {"CidrBlock": f"10.{maker.number}.0.0/16", "TagSpecifications": maker.specification("vpc")}
    return maker.client("ec2").create_vpc(**parameters)["Vpc"]["VpcId"]


NETWORK: Mapping[str, Creator] = {
    "NAT gateway": _nat_gateway,
    "Elastic IP address": _address,
    "VPC endpoint": _endpoint,
    "network interface": _interface,
    "internet gateway": _internet_gateway,
    "security group": _security_group,
    "network ACL": _acl,
    "route table": _route_table,
    "subnet": _subnet,
    "VPC": _vpc,
}
