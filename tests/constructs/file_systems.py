"""File systems that a group of nodes may reach, synthesised in a network of the user's own."""

from collections.abc import Callable, Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import Json, Template, as_text, new_stack, synthesize
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_userdata.locations import NodeLocations

SUBNET_ID = "subnet-0123456789abcdef0"
OWN_GROUP = "sg-0123456789abcdef0"

Ports = set[tuple[int, int]]
Placed = tuple[Template, Mapping[str, str]]
"""A template, and the locations that nodes are given."""


def placed(make: Callable[[Stack, ec2.IVpc, ec2.ISubnet], NodeFileSystem]) -> Placed:
    """A file system with nodes that may reach it."""
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["any"])
    subnet = ec2.Subnet.from_subnet_attributes(stack, "Subnet", subnet_id=SUBNET_ID, route_table_id="rtb-1")
    file_system = make(stack, vpc, subnet)
    file_system.allow(ec2.SecurityGroup(stack, "Nodes", vpc=vpc, allow_all_outbound=False))
    places = file_system.added_to(
        NodeLocations(region="us-west-2", cache_url="s3://cache", report_url="s3://records", node_script_url="s3://x")
    )
    shown = {name: as_text(stack.resolve(value)) for name, value in vars(places).items() if value is not None}
    return synthesize(stack), shown


def group(template: Template, name: str) -> Json:
    """The properties of a security group, by the beginning of its logical id."""
    return template.resources()[_logical_id(template, name)]["Properties"]


def group_id(template: Template, name: str) -> Json:
    return {"Fn::GetAtt": [_logical_id(template, name), "GroupId"]}


def _logical_id(template: Template, name: str) -> str:
    (logical_id,) = (one for one in template.resources("AWS::EC2::SecurityGroup") if one.startswith(name))
    return logical_id


def let_in(template: Template, to: Any, source: Any) -> Ports:
    """The TCP ports of a group that are open to another."""
    return _opened(template, "Ingress", to, SourceSecurityGroupId=source)


def let_out(template: Template, source: Any, to: Any) -> Ports:
    """The TCP ports of another group that a group may reach."""
    return _opened(template, "Egress", source, DestinationSecurityGroupId=to)


def _opened(template: Template, direction: str, group_id: Any, **other: Any) -> Ports:
    rules = [rule["Properties"] for rule in template.resources(f"AWS::EC2::SecurityGroup{direction}").values()]
    wanted = {"GroupId": group_id, "IpProtocol": "tcp", **other}
    return {(rule["FromPort"], rule["ToPort"]) for rule in rules if wanted.items() <= rule.items()}
