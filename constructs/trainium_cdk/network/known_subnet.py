"""Checks of the nodes' subnet at synthesis."""

import ipaddress
from collections.abc import Sequence
from typing import Literal

from aws_cdk import Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.cdk_types import Subnet
from trainium_cdk.checks import refuse
from trainium_cdk.network.subnet_selection import is_placeholder
from trainium_cdk.storage.elastic_file_system import ElasticFileSystem
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings


def check_addresses(construct: Construct, node: NodeSettings, nodes: int, subnet: ec2.ISubnet) -> None:
    """Raise PropsError if the CIDR block of a subnet is known and has too few addresses for the nodes."""
    block = _known(subnet, "ipv4_cidr_block")
    if block is None:
        return
    available = ipaddress.IPv4Network(block, strict=False).num_addresses - facts()["subnet"]["reserved_addresses"]
    needed = nodes * node.addresses
    if needed > available:
        allowed = (
            f"up to {available // node.addresses}: {subnet.node.path} has {available} addresses for nodes, and each "
            f"node needs {node.addresses}"
        )
        fix = "choose a larger subnet, or fewer nodes"
        if node.addresses > 1:
            fix += ", or give secondary_interface_type='efa-only'"
        raise refuse(construct, "nodes", nodes, allowed=allowed, fix=fix)


def check_mount_targets(construct: Construct, file_systems: Sequence[NodeFileSystem], subnet: ec2.ISubnet) -> None:
    """Raise PropsError for a mount target in another zone than the nodes, whose DNS name would not resolve for them.

    Source: Amazon EFS User Guide, mounting with a DNS name.
    """
    zone = _known(subnet, "availability_zone")
    for file_system in file_systems:
        own = file_system.subnet if isinstance(file_system, ElasticFileSystem) else None
        other = None if own is None else _known(own, "availability_zone")
        if zone is not None and other is not None and zone != other:
            allowed = f"a mount target in {zone}, the zone of the nodes, because its DNS name resolves only there"
            fix = f"create the ElasticFileSystem with the subnet of the nodes, {subnet.node.path}"
            raise refuse(construct, "file_systems", f"{file_system.node.path} in {other}", allowed=allowed, fix=fix)


def _known(subnet: Subnet, attribute: Literal["availability_zone", "ipv4_cidr_block"]) -> str | None:
    try:
        value: str = getattr(subnet, attribute)
    except RuntimeError:  # of the CDK, for an imported subnet without the attribute
        return None
    return None if Token.is_unresolved(value) or is_placeholder(value) else value
