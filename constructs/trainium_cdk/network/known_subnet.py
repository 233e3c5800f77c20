"""Checks of the nodes' subnet at synthesis."""

import ipaddress
from collections.abc import Sequence
from typing import Literal

from aws_cdk import Annotations, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.cdk_types import Subnet
from trainium_cdk.checks import refuse
from trainium_cdk.network.subnet_selection import is_placeholder
from trainium_cdk.storage.elastic_file_system import ElasticFileSystem
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings


def check_addresses(construct: Construct, node: NodeSettings, nodes: int, subnets: Sequence[ec2.ISubnet]) -> None:
    """Raise PropsError if the CIDR blocks of all subnets are known, and none has enough addresses for the nodes."""
    blocks = {subnet.node.path: _known(subnet, "ipv4_cidr_block") for subnet in subnets}
    known = {path: _addresses(block) for path, block in blocks.items() if block is not None}
    if len(known) < len(blocks):
        return
    largest = max(known, key=lambda path: known[path])
    available = known[largest]
    if nodes * node.addresses > available:
        allowed = (
            f"up to {available // node.addresses}: {largest} has {available} addresses for nodes, and each "
            f"node needs {node.addresses}"
        )
        fix = "choose a larger subnet, or fewer nodes"
        if node.addresses > 1:
            fix += ", or set secondary_interface_type='efa-only'"
        raise refuse(construct, "nodes", nodes, allowed=allowed, fix=fix)


def _addresses(block: str) -> int:
    return ipaddress.IPv4Network(block, strict=False).num_addresses - facts()["subnet"]["reserved_addresses"]


def check_file_system_zones(construct: Construct, file_systems: Sequence[NodeFileSystem], subnet: ec2.ISubnet) -> None:
    """Raise PropsError for a mount target that is known to be in another zone than the nodes, whose DNS name would not
    resolve for them. Add a warning for another file system in another zone.

    Source: Amazon EFS User Guide, mounting with a DNS name.
    """
    zone = _known(subnet, "availability_zone")
    for file_system in file_systems:
        other = None if file_system.subnet is None else _known(file_system.subnet, "availability_zone")
        if zone is None or other is None or zone == other:
            continue
        got = f"{file_system.node.path} in {other}"
        if isinstance(file_system, ElasticFileSystem):
            allowed = f"a mount target in {zone}, the zone of the nodes, because its DNS name resolves only there"
            fix = f"create the ElasticFileSystem with the subnet of the nodes, {subnet.node.path}"
            raise refuse(construct, "file_systems", got, allowed=allowed, fix=fix)
        Annotations.of(construct).add_warning_v2(
            "trn:file_systems.zone",
            f"{got}, and the nodes in {zone}: the traffic between zones is billed, and slower",
        )


def _known(subnet: Subnet, attribute: Literal["availability_zone", "ipv4_cidr_block"]) -> str | None:
    try:
        value: str = getattr(subnet, attribute)
    except RuntimeError:  # of the CDK, for an imported subnet without the attribute
        return None
    return None if Token.is_unresolved(value) or is_placeholder(value) else value
