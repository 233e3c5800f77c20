"""The name of a cluster: made of a path, unique among what is deployed together, and a tag on everything."""

import re
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from aws_cdk import Names, Stack, Stage, Tags, Token
from constructs import Construct, IConstruct

from trainium_cdk.checks import check, check_known, form, refuse
from trainium_runtime.naming import CLUSTER_TAG

_LONGEST = 32
_TAGS_CANNOT_CHANGE = "AWS::EC2::PlacementGroup"
"""The type whose tags are create-only, by the schema of CloudFormation's registry."""

_named: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()
"""Of each app: the path of a construct by its kind, by where it is deployed, and by its cluster name."""


def checked_cluster_name(construct: Construct, cluster_name: str | None) -> str:
    """The name that is given, else one made of the construct's path. Raises PropsError for another form or a token."""
    if cluster_name is None:
        name = Names.unique_resource_name(construct, max_length=_LONGEST - 2, separator="-").lower()
        return re.sub("-+", "-", name if name[:1].isalpha() else f"n-{name}").strip("-")
    check_known(construct, "cluster_name", cluster_name, why="tags and names hold it, and no two fleets share one")
    check(construct, form("cluster_name", cluster_name))
    return cluster_name


def claim_cluster_name(construct: Construct, cluster_name: str, *, kind: str = "fleet") -> None:
    """Note the name for a construct. Raises PropsError where another of its kind has it, in one account and region."""
    stack = Stack.of(construct)
    account, region = ("" if Token.is_unresolved(one) else one for one in (stack.account, stack.region))
    # Stages without an environment may be for different accounts.
    stage = Stage.of(construct)
    where = f"{account}/{stage.node.path if stage is not None and not account else ''}"
    known = _named.setdefault(construct.node.root, {})
    other = known.setdefault((kind, where, region, cluster_name), construct.node.path)
    if other != construct.node.path:
        raise refuse(
            construct,
            "cluster_name",
            cluster_name,
            allowed=f"another name than that of {other}: `trn` and permissions tell clusters apart by it",
            fix=f"give each {kind} a cluster_name of its own",
        )


def tag_all(construct: Construct, cluster_name: str, tags: Mapping[str, str]) -> None:
    """Put the name of a cluster on everything in a construct, and tags on all but placement groups.

    CloudFormation replaces a placement group whose tags change, and with it the nodes.
    """
    for key, value in tags.items():
        Tags.of(construct).add(key, value, exclude_resource_types=[_TAGS_CANNOT_CHANGE])
    Tags.of(construct).add(CLUSTER_TAG, cluster_name)
