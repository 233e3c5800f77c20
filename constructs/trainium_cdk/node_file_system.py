"""What a fleet asks of a file system that its nodes mount."""

from abc import abstractmethod
from collections.abc import Mapping

from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_userdata import NodeLocations


class NodeFileSystem(Construct):
    """A file system behind a security group. `dns_name` is what a mount needs, `security_group` the CDK object."""

    dns_name: str
    security_group: ec2.ISecurityGroup

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """The settings of a plan whose nodes mount a file system of this kind, by their keys."""

    @abstractmethod
    def allow(self, nodes: ec2.ISecurityGroup) -> None:
        """Open what the file system needs between itself and the nodes, and nothing else. nodes: the nodes' group."""

    @abstractmethod
    def added_to(self, places: NodeLocations) -> NodeLocations:
        """The places with this file system among them. places: what the nodes' user data say."""


def keep_when_replaced(resource: CfnResource, at_destroy: RemovalPolicy) -> None:
    """Let an update that replaces a resource keep the old one with its data, whatever becomes of it at destroy."""
    resource.apply_removal_policy(at_destroy)
    resource.cfn_options.update_replace_policy = CfnDeletionPolicy.RETAIN
