"""Reads the node groups and Pod Identity associations of an EKS cluster, without those that are deleted meanwhile."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_runtime.aws_errors import read_errors

_ABSENT = ("ResourceNotFoundException",)


def described_groups(eks: Any, cluster: str) -> Iterator[Mapping[str, Any]]:
    """The descriptions of the node groups of a cluster. Raises UnavailableError.

    Args:
        eks: The client of Amazon EKS.
        cluster: Name of the cluster.
    """
    names = list[str]()
    with read_errors("eks:ListNodegroups", absent=_ABSENT):
        names = [*eks.get_paginator("list_nodegroups").paginate(clusterName=cluster).search("nodegroups[]")]
    for name in names:
        with read_errors("eks:DescribeNodegroup", absent=_ABSENT):
            yield eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]


def described_associations(eks: Any, cluster: str) -> Iterator[Mapping[str, Any]]:
    """The descriptions of the Pod Identity associations of a cluster. Raises UnavailableError.

    Args:
        eks: The client of Amazon EKS.
        cluster: Name of the cluster.
    """
    found = list[Mapping[str, Any]]()
    with read_errors("eks:ListPodIdentityAssociations", absent=_ABSENT):
        pages = eks.get_paginator("list_pod_identity_associations").paginate(clusterName=cluster)
        found = [*pages.search("associations[]")]
    for each in found:
        with read_errors("eks:DescribePodIdentityAssociation", absent=_ABSENT):
            parameters = {"clusterName": cluster, "associationId": each["associationId"]}
            yield eks.describe_pod_identity_association(**parameters)["association"]
