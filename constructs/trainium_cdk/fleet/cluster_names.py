"""The names of clusters: the default, the checks that a name and a stack have one cluster, and the tag trn:cluster."""

import re
from collections.abc import Mapping
from typing import Literal
from weakref import WeakKeyDictionary

from aws_cdk import Names, Stack, Stage, Tags, Token
from constructs import Construct, IConstruct

from trainium_cdk.checks import check, check_known, form, refuse
from trainium_runtime.naming import CLUSTER_TAG

_LONGEST = 32
_TYPE_WITH_FIXED_TAGS = "AWS::EC2::PlacementGroup"
"""The resource type whose tags are create-only, by its schema in the CloudFormation registry."""

_named: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()
"""For each app, the path of a construct by its kind, its account and region, and its name."""

ClusterConstruct = Literal["EksJobs", "fleet", "PcsCluster", "SageMakerTraining"]

_in_stack: WeakKeyDictionary[Stack, dict[str, tuple[ClusterConstruct, str]]] = WeakKeyDictionary()
"""For each stack, the kind and cluster name of each construct that belongs to a cluster, by path."""


def checked_cluster_name(construct: Construct, cluster_name: str | None) -> str:
    """The given name, by default one derived from the construct's path. Raises PropsError if it is invalid or a
    token."""
    if cluster_name is None:
        name = Names.unique_resource_name(construct, max_length=_LONGEST - 2, separator="-").lower()
        return re.sub("-+", "-", name if name[:1].isalpha() else f"n-{name}").strip("-")
    check_known(construct, "cluster_name", cluster_name, why="it is part of tags and names, and identifies one fleet")
    check(construct, form("cluster_name", cluster_name))
    return cluster_name


def first_owner(construct: Construct, kind: str, name: str) -> str:
    """The path of the first construct of the app in the account and region that has this name of a kind: this one, or
    an earlier one."""
    stack = Stack.of(construct)
    account, region = ("" if Token.is_unresolved(text) else text for text in (stack.account, stack.region))
    # Stages without an environment may be for different accounts.
    stage = Stage.of(construct)
    where = f"{account}/{stage.node.path if stage is not None and not account else ''}"
    known = _named.setdefault(construct.node.root, {})
    return known.setdefault((kind, where, region, name), construct.node.path)


def claim_cluster(construct: Construct, cluster_name: str, *, kind: ClusterConstruct) -> None:
    """Register a construct of a cluster.

    Raises PropsError if its stack has another cluster, or another construct of this kind in the account and region has
    the name.
    """
    _claim_stack(construct, Stack.of(construct), cluster_name, kind)
    other = first_owner(construct, kind, cluster_name)
    if other != construct.node.path:
        raise refuse(
            construct,
            "cluster_name",
            cluster_name,
            allowed=f"another name than that of {other}: `trn` and permissions identify clusters by their names",
            fix=f"set a different cluster_name for each {kind}",
        )


def _claim_stack(construct: Construct, stack: Stack, cluster_name: str, kind: ClusterConstruct) -> None:
    """Raise PropsError if the stack has the nodes of another construct, or a construct of another cluster."""
    constructs = _in_stack.setdefault(stack, {})
    for other, (other_kind, other_name) in constructs.items():
        may_share = kind != other_kind and "SageMakerTraining" in (kind, other_kind)
        if other_name != cluster_name or not may_share:
            raise refuse(
                construct,
                "scope",
                stack.node.path,
                allowed=f"one cluster in a stack, and this one has {other} of the cluster {other_name}",
                fix="create a stack for each cluster" + (f", or set cluster_name={other_name!r}" if may_share else ""),
            )
    constructs[construct.node.path] = (kind, cluster_name)


def tag_all(construct: Construct, cluster_name: str, tags: Mapping[str, str]) -> None:
    """Tag every resource of a construct with the name of its cluster and with other tags.

    Placement groups do not get the other tags: if the tags of a placement group change, CloudFormation replaces it, and
    therefore all nodes.
    """
    for key, value in tags.items():
        Tags.of(construct).add(key, value, exclude_resource_types=[_TYPE_WITH_FIXED_TAGS])
    Tags.of(construct).add(CLUSTER_TAG, cluster_name)
