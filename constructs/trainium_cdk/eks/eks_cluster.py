"""The EKS cluster in a construct's parameters."""

from typing import Protocol

from aws_cdk import aws_ec2 as ec2
from aws_cdk.interfaces import ResourceEnvironment
from constructs import Construct, Node

from trainium_cdk.checks import check_same_account, check_same_region, first_line, refuse


class EksCluster(Protocol):
    """The attributes that `ICluster` of `aws_eks` and of `aws_eks_v2` share, and that node groups read."""

    @property
    def cluster_name(self) -> str: ...
    @property
    def cluster_security_group_id(self) -> str: ...
    @property
    def env(self) -> ResourceEnvironment: ...
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
