"""The interface of file systems that nodes mount."""

import re
from abc import abstractmethod
from collections.abc import Sequence

from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.cdk_types import Subnet
from trainium_cdk.checks import check_same_region, is_pending, is_token, refuse
from trainium_cdk.network.same_vpc import refuse_another_vpc
from trainium_cdk.network.security_group import group_vpc_id
from trainium_core.plan.node_settings import Mount
from trainium_core.setting_schema.setting import HEX_ID
from trainium_userdata.locations import NodeLocations


class NodeFileSystem(Construct):
    """A file system that nodes mount, with a security group. `dns_name` is its address, `kind` is `lustre` or `efs`.

    `subnet` is the subnet of a new file system, else None.
    """

    dns_name: str
    kind: Mount
    security_group: ec2.ISecurityGroup
    subnet: Subnet | None

    @abstractmethod
    def allow(self, nodes: ec2.ISecurityGroup) -> None:
        """Open the ports that the file system needs between itself and the nodes, and no others.

        Args:
            nodes: Security group of the nodes.
        """

    @abstractmethod
    def added_to(self, locations: NodeLocations) -> NodeLocations:
        """The locations with this file system added.

        Args:
            locations: Locations of the nodes' user data.
        """


def keep_when_replaced(resource: CfnResource, at_destroy: RemovalPolicy) -> None:
    """Set the removal policy of a resource, and keep the resource with its data when an update replaces it.

    Args:
        at_destroy: The removal policy when the stack is deleted.
    """
    resource.apply_removal_policy(at_destroy)
    resource.cfn_options.update_replace_policy = CfnDeletionPolicy.RETAIN


def check_file_system_id(construct: Construct, value: str) -> None:
    """Raise PropsError unless a value is the ID of a file system, or a CDK token."""
    if not is_token(value) and not is_pending(value) and not re.fullmatch(f"fs-{HEX_ID}", value):
        allowed = "the ID of a file system, such as fs-0123456789abcdef0"
        raise refuse(construct, "file_system_id", value, allowed=allowed, fix="pass the ID of an existing file system")


def check_file_systems(construct: Construct, file_systems: Sequence[NodeFileSystem], vpc: ec2.IVpc) -> None:
    """Raise PropsError for a file system that is known to be in another region or VPC than the nodes, and for two of
    one kind."""
    for file_system in file_systems:
        group = file_system.security_group
        check_same_region(construct, "file_systems", group, what="a file system")
        refuse_another_vpc(construct, "file_systems", file_system, group_vpc_id(group), vpc)
    kinds = [file_system.kind for file_system in file_systems]
    if len(kinds) != len(set(kinds)):
        paths = ", ".join(file_system.node.path for file_system in file_systems)
        allowed = "one of each kind: nodes mount each kind at one path"
        raise refuse(construct, "file_systems", paths, allowed=allowed, fix="remove one of them")
