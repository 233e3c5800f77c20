"""The network of a cluster, as EC2 shows it after a deployment, an update and a deletion."""

from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, template


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::EC2::{kind}", "Properties": properties}


def network(**more: Any) -> dict[str, Any]:
    """A private subnet by zone ID, with a gateway endpoint for S3."""
    return {
        "V": resource("VPC", CidrBlock="10.0.0.0/16", EnableDnsSupport=True, EnableDnsHostnames=True),
        "S": resource("Subnet", VpcId={"Ref": "V"}, CidrBlock="10.0.0.0/20", AvailabilityZoneId="usw2-az4"),
        "T": resource("RouteTable", VpcId={"Ref": "V"}),
        "TS": resource("SubnetRouteTableAssociation", RouteTableId={"Ref": "T"}, SubnetId={"Ref": "S"}),
        "E": resource(
            "VPCEndpoint",
            VpcId={"Ref": "V"},
            ServiceName="com.amazonaws.us-west-2.s3",
            VpcEndpointType="Gateway",
            RouteTableIds=[{"Ref": "T"}],
        ),
        **more,
    }


def public(**more: Any) -> dict[str, Any]:
    """A network with an internet gateway, an Elastic IP address, a NAT gateway and a route to it."""
    return network(
        I=resource("InternetGateway"),
        IA=resource("VPCGatewayAttachment", VpcId={"Ref": "V"}, InternetGatewayId={"Ref": "I"}),
        A={**resource("EIP", Domain="vpc"), "DependsOn": "IA"},
        N=resource("NatGateway", SubnetId={"Ref": "S"}, AllocationId={"Fn::GetAtt": ["A", "AllocationId"]}),
        R=resource("Route", RouteTableId={"Ref": "T"}, DestinationCidrBlock="0.0.0.0/0", NatGatewayId={"Ref": "N"}),
        **more,
    )


def count_resources(stacks: Stacks) -> dict[str, int]:
    ec2 = stacks.aws.client("ec2")
    return {
        "vpcs": len(ec2.describe_vpcs()["Vpcs"]),
        "subnets": len(ec2.describe_subnets()["Subnets"]),
        "tables": len(ec2.describe_route_tables()["RouteTables"]),
        "groups": len(ec2.describe_security_groups()["SecurityGroups"]),
        "gateways": len(ec2.describe_internet_gateways()["InternetGateways"]),
        "addresses": len(ec2.describe_addresses()["Addresses"]),
        "interfaces": len(ec2.describe_network_interfaces()["NetworkInterfaces"]),
        "endpoints": len(ec2.describe_vpc_endpoints()["VpcEndpoints"]),
        "nat": len([one for one in ec2.describe_nat_gateways()["NatGateways"] if one["State"] != "deleted"]),
    }


def test_subnet_zone_and_vpc_dns_settings_are_applied(stacks: Stacks) -> None:
    name = stacks.deploy(template(network()))
    ec2, vpc = stacks.aws.client("ec2"), stacks.physical_id(name, "V")
    (subnet,) = ec2.describe_subnets(SubnetIds=[stacks.physical_id(name, "S")])["Subnets"]
    assert subnet["AvailabilityZoneId"] == "usw2-az4"

    def host_names() -> bool:
        found = ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")
        return found["EnableDnsHostnames"]["Value"]

    assert host_names()
    changed = network()
    changed["V"]["Properties"]["EnableDnsHostnames"] = False
    assert stacks.update(name, template(changed)) == "UPDATE_COMPLETE"
    assert stacks.physical_id(name, "V") == vpc
    assert not host_names()


def test_tags_of_network_resources_change_in_place(stacks: Stacks) -> None:
    described = {
        "V": ("describe_vpcs", "Vpcs", "VpcId"),
        "S": ("describe_subnets", "Subnets", "SubnetId"),
        "T": ("describe_route_tables", "RouteTables", "RouteTableId"),
        "E": ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
        "I": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
        "A": ("describe_addresses", "Addresses", "PublicIp"),
        "N": ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
        "G": ("describe_security_groups", "SecurityGroups", "GroupId"),
    }

    def tagged(*tags: tuple[str, str]) -> dict[str, Any]:
        resources = public(
            G=resource("SecurityGroup", GroupDescription="g", VpcId={"Ref": "V"}),
        )
        for name in described:
            resources[name]["Properties"]["Tags"] = [{"Key": key, "Value": value} for key, value in tags]
        return template(resources)

    def tags(logical_id: str) -> dict[str, str]:
        operation, key, identifier = described[logical_id]
        found = getattr(stacks.aws.client("ec2"), operation)()[key]
        (one,) = [item for item in found if item[identifier] == stacks.physical_id(name, logical_id)]
        return {tag["Key"]: tag["Value"] for tag in one["Tags"]}

    name = stacks.deploy(tagged(("goes", "1"), ("stays", "1")))
    before = {one: stacks.physical_id(name, one) for one in described}
    assert stacks.update(name, tagged(("stays", "2"), ("comes", "1"))) == "UPDATE_COMPLETE", stacks.failures(name)
    assert {one: stacks.physical_id(name, one) for one in described} == before
    assert {one: tags(one) for one in described} == {one: {"stays": "2", "comes": "1"} for one in described}


def test_network_with_internet_access_is_complete_and_leaves_nothing(stacks: Stacks) -> None:
    before = count_resources(stacks)
    name = stacks.deploy(template(public()))
    created = count_resources(stacks)
    assert {kind: created[kind] - before[kind] for kind in before} == {
        "vpcs": 1,
        "subnets": 1,
        "tables": 2,  # Includes the main route table of the VPC.
        "groups": 1,  # The default security group of the VPC.
        "gateways": 1,
        "addresses": 1,
        "interfaces": 1,  # The interface of the NAT gateway.
        "endpoints": 1,
        "nat": 1,
    }
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert count_resources(stacks) == before


def test_interface_endpoints_are_deleted_with_their_interfaces(stacks: Stacks) -> None:
    before = count_resources(stacks)
    group = resource("SecurityGroup", GroupDescription="g", VpcId={"Ref": "V"})
    endpoint = resource(
        "VPCEndpoint",
        VpcId={"Ref": "V"},
        ServiceName="com.amazonaws.us-west-2.ssm",
        VpcEndpointType="Interface",
        PrivateDnsEnabled=True,
        SubnetIds=[{"Ref": "S"}],
        SecurityGroupIds=[{"Ref": "G"}],
    )
    name = stacks.deploy(template(network(G=group, X=endpoint)))
    assert count_resources(stacks)["interfaces"] == before["interfaces"] + 1
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert count_resources(stacks) == before


class TestSecurityGroup:
    def rules(self, stacks: Stacks, name: str) -> tuple[Any, Any]:
        found = stacks.aws.client("ec2").describe_security_groups(GroupIds=[stacks.physical_id(name, "G")])
        group = found["SecurityGroups"][0]
        return group["IpPermissions"], group["IpPermissionsEgress"]

    def with_group(self, **properties: Any) -> dict[str, Any]:
        group = resource("SecurityGroup", GroupDescription="g", VpcId={"Ref": "V"}, **properties)
        return network(G=group)

    def test_inline_rules_replace_the_default_and_change_in_place(self, stacks: Stacks) -> None:
        def opened(port: int) -> dict[str, Any]:
            rule = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "CidrIp": "10.0.0.0/16"}
            return template(self.with_group(SecurityGroupIngress=[rule], SecurityGroupEgress=[rule]))

        name = stacks.deploy(template(self.with_group()))
        group = stacks.physical_id(name, "G")
        assert [rule["IpRanges"][0]["CidrIp"] for rule in self.rules(stacks, name)[1]] == ["0.0.0.0/0"]
        for port in (1, 2):
            stacks.update(name, opened(port))
            ports = [[rule["FromPort"] for rule in rules] for rules in self.rules(stacks, name)]
            assert (ports, stacks.physical_id(name, "G")) == ([[port], [port]], group)

    def test_self_referencing_rules_are_created_and_deleted(self, stacks: Stacks) -> None:
        me = {"Fn::GetAtt": ["G", "GroupId"]}
        closed = {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, "CidrIp": "127.0.0.1/32"}
        own = {
            "In": resource("SecurityGroupIngress", GroupId=me, IpProtocol="-1", SourceSecurityGroupId=me),
            "Out": resource("SecurityGroupEgress", GroupId=me, IpProtocol="-1", DestinationSecurityGroupId=me),
        }
        base = self.with_group(SecurityGroupEgress=[closed])
        name = stacks.deploy(template({**base, **own}))
        inward, outward = self.rules(stacks, name)
        assert inward[0]["UserIdGroupPairs"][0]["GroupId"] == stacks.physical_id(name, "G")
        assert any(rule["UserIdGroupPairs"] for rule in outward)
        stacks.update(name, template(base))
        inward, outward = self.rules(stacks, name)
        assert inward == []
        assert not any(rule["UserIdGroupPairs"] for rule in outward)

    def test_group_and_vpc_in_use_are_not_deleted(self, stacks: Stacks) -> None:
        name = stacks.deploy(template(self.with_group()))
        ec2 = stacks.aws.client("ec2")
        other = ec2.create_security_group(GroupName="other", Description="d", VpcId=stacks.physical_id(name, "V"))
        used = ec2.create_network_interface(
            SubnetId=stacks.physical_id(name, "S"), Groups=[stacks.physical_id(name, "G")]
        )["NetworkInterface"]["NetworkInterfaceId"]
        assert stacks.delete(name) == "DELETE_FAILED"
        assert "has a dependent object" in stacks.failures(name)
        ec2.delete_network_interface(NetworkInterfaceId=used)
        assert stacks.delete(name) == "DELETE_FAILED"
        assert "has dependencies and cannot be deleted" in stacks.failures(name)
        ec2.delete_security_group(GroupId=other["GroupId"])
        assert stacks.delete(name) == "DELETE_COMPLETE"
