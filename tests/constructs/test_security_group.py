"""EfaSecurityGroup allows traffic within the group, no other ingress, and only the given egress."""

from functools import cache

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import Json, Template, new_stack, synthesize
from trainium_cdk import EfaSecurityGroup

ALL_PROTOCOLS = "-1"


@cache
def group(*ports: int, closed: bool = False, dns_servers: tuple[str, ...] = ()) -> Template:
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["any"])
    if ports or closed:
        EfaSecurityGroup(stack, "Group", vpc=vpc, outbound_tcp_ports=ports, dns_servers=dns_servers)
    else:
        EfaSecurityGroup(stack, "Group", vpc=vpc)
    return synthesize(stack)


def itself(template: Template) -> Json:
    return {"Fn::GetAtt": [template.logical_id("AWS::EC2::SecurityGroup"), "GroupId"]}


def test_ingress_is_allowed_only_from_the_group_itself() -> None:
    rule = group().properties("AWS::EC2::SecurityGroupIngress")
    assert rule["IpProtocol"] == ALL_PROTOCOLS
    assert rule["GroupId"] == rule["SourceSecurityGroupId"] == itself(group())
    assert "SecurityGroupIngress" not in group().properties("AWS::EC2::SecurityGroup")


def test_all_protocols_are_allowed_out_to_the_group_itself() -> None:
    rule = group().properties("AWS::EC2::SecurityGroupEgress")
    assert rule["IpProtocol"] == ALL_PROTOCOLS
    assert rule["GroupId"] == rule["DestinationSecurityGroupId"] == itself(group())


def test_only_https_is_allowed_out_by_default() -> None:
    (rule,) = group().properties("AWS::EC2::SecurityGroup")["SecurityGroupEgress"]
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 443, 443)


def test_group_without_ports_does_not_get_the_default_egress_rule() -> None:
    (rule,) = group(closed=True).properties("AWS::EC2::SecurityGroup")["SecurityGroupEgress"]
    assert rule["CidrIp"] == "127.0.0.1/32"


def test_dns_server_is_allowed_only_at_its_address() -> None:
    template = group(443, dns_servers=("10.1.0.2",))
    rules = template.properties("AWS::EC2::SecurityGroup")["SecurityGroupEgress"]
    assert {(rule["CidrIp"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in rules} == {
        ("0.0.0.0/0", "tcp", 443, 443),
        ("10.1.0.2/32", "udp", 53, 53),
        ("10.1.0.2/32", "tcp", 53, 53),
    }


def test_dns_server_may_be_a_token() -> None:
    rules = group(443, dns_servers=(Fn.import_value("Resolver"),)).properties("AWS::EC2::SecurityGroup")
    cidrs = [rule["CidrIp"] for rule in rules["SecurityGroupEgress"]]
    assert cidrs.count({"Fn::Join": ["", [{"Fn::ImportValue": "Resolver"}, "/32"]]}) == 2
