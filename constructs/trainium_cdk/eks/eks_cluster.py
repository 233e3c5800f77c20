"""The EKS cluster in a construct's parameters."""

from enum import Enum
from typing import Protocol

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from constructs import Construct, Node

from trainium_cdk.checks import check_same_account, check_same_region, first_line, refuse

_CONFIG_MAP = eks.AuthenticationMode.CONFIG_MAP


class EksCluster(Protocol):
    """The attributes that `ICluster` of `aws_eks` and of `aws_eks_v2` share, and that node groups read."""

    @property
    def cluster_name(self) -> str: ...
    @property
    def cluster_security_group_id(self) -> str: ...
    @property
    def env(self) -> ResourceEnvironment: ...
    @property
    def ip_family(self) -> Enum | None: ...
    @property
    def node(self) -> Node: ...
    @property
    def vpc(self) -> ec2.IVpc: ...


def check_cluster(construct: Construct, cluster: EksCluster) -> None:
    """Raise PropsError if a cluster is known to be in another account or region than the construct."""
    check_same_account(construct, "cluster", cluster, what="a cluster")
    check_same_region(construct, "cluster", cluster, what="a cluster")


def cluster_network(construct: Construct, cluster: EksCluster) -> tuple[ec2.IVpc, ec2.ISecurityGroup]:
    """The VPC of a cluster and its security group, through which nodes reach the control plane.

    Raises:
        PropsError: The cluster is imported without them.
    """
    try:
        vpc, group_id = cluster.vpc, cluster.cluster_security_group_id
    except RuntimeError as error:
        allowed = "a cluster with its VPC and its cluster security group"
        fix = (
            "import it with Cluster.from_cluster_attributes(..., vpc=vpc, cluster_security_group_id='sg-...'); "
            f"the CDK reports: {first_line(error)}"
        )
        raise refuse(construct, "cluster", cluster, allowed=allowed, fix=fix) from None
    group = ec2.SecurityGroup.from_security_group_id(construct, "ClusterSecurityGroup", group_id, mutable=False)
    return vpc, group


def has_ipv6_pods(cluster: EksCluster) -> bool:
    """Whether the pods of a cluster have IPv6 addresses. An imported cluster has them if its `ip_family` is given."""
    return cluster.ip_family is not None and cluster.ip_family.value == eks.IpFamily.IP_V6.value


def let_nodes_join(construct: Construct, cluster: EksCluster, role: iam.IRole) -> None:
    """Add the role of nodes to the ConfigMap aws-auth that the app writes.

    EKS adds the role itself, to an access entry or to aws-auth. An `aws_eks.Cluster` overwrites aws-auth, which decides
    alone in its default authentication mode.

    Raises:
        PropsError: The cluster overwrites aws-auth, and is in another stack, which cannot refer to the role.
    """
    if not isinstance(cluster, eks.Cluster) or cluster.authentication_mode not in (None, _CONFIG_MAP):
        return
    if Stack.of(cluster) != Stack.of(construct):
        allowed = "a cluster in the stack of the group, because aws-auth in its stack needs the role of the nodes"
        fix = "create the group in that stack, or the cluster with authentication_mode=API_AND_CONFIG_MAP"
        raise refuse(construct, "cluster", cluster, allowed=allowed, fix=fix)
    groups = ["system:bootstrappers", "system:nodes"]
    cluster.aws_auth.add_role_mapping(role, username="system:node:{{EC2PrivateDNSName}}", groups=groups)
