"""The EKS cluster in a construct's parameters."""

from enum import Enum
from typing import Protocol

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from constructs import Construct, IValidation, Node

from trainium_cdk.checks import check_same_account, check_same_region, first_line, refuse

_CONFIG_MAP = eks.AuthenticationMode.CONFIG_MAP
_AWS_AUTH = "AwsAuth"
"""ID of the child that `aws_eks.Cluster` creates at the first use of its `aws_auth`."""


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
    """Add the role of nodes to the ConfigMap aws-auth if the app writes it.

    EKS adds the role itself, to an access entry or to aws-auth. An `aws_eks.Cluster` whose `aws_auth` is used
    overwrites aws-auth, which decides alone in its default authentication mode. A first use after this call fails the
    synthesis.

    Raises:
        PropsError: The cluster overwrites aws-auth, and is in another stack, which cannot refer to the role.
    """
    if not isinstance(cluster, eks.Cluster) or cluster.authentication_mode not in (None, _CONFIG_MAP):
        return
    if not _overwrites_aws_auth(cluster):  # The use of aws_auth would remove all other roles from a cluster.
        construct.node.add_validation(_KeepsAwsAuth(cluster))
        return
    if Stack.of(cluster) != Stack.of(construct):
        allowed = "a cluster in the stack of the group, because aws-auth in its stack needs the role of the nodes"
        fix = "create the group in that stack, or the cluster with authentication_mode=API_AND_CONFIG_MAP"
        raise refuse(construct, "cluster", cluster, allowed=allowed, fix=fix)
    groups = ["system:bootstrappers", "system:nodes"]
    cluster.aws_auth.add_role_mapping(role, username="system:node:{{EC2PrivateDNSName}}", groups=groups)


def _overwrites_aws_auth(cluster: eks.Cluster) -> bool:
    return cluster.node.try_find_child(_AWS_AUTH) is not None


@jsii.implements(IValidation)
class _KeepsAwsAuth:
    """Rejects a cluster that, at the end of the synthesis, overwrites aws-auth without the role of a group."""

    def __init__(self, cluster: eks.Cluster) -> None:
        self._cluster = cluster

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        if not _overwrites_aws_auth(self._cluster):
            return []
        return [
            f"cluster: got {self._cluster.node.path}, whose aws-auth the app began to write after it had created the "
            "group, without the role of the nodes; allowed: a cluster whose aws-auth has that role; fix: use "
            "cluster.aws_auth before you create the group, or create the cluster with "
            "authentication_mode=API_AND_CONFIG_MAP"
        ]
