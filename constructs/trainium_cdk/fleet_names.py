"""Names of clusters: one that is made of a path, and that no two fleets which are deployed together share one."""

import re
from weakref import WeakKeyDictionary

from aws_cdk import Names, Stack, Stage, Token
from constructs import Construct, IConstruct

from trainium_cdk.props_error import refuse

_LONGEST = 32

_named: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()
"""Of each app: the path of a construct by its kind, by where it is deployed, and by its cluster name."""


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


def generated_cluster_name(construct: Construct) -> str:
    """A cluster name made of a construct's path."""
    name = Names.unique_resource_name(construct, max_length=_LONGEST - 2, separator="-").lower()
    return re.sub("-+", "-", name if name[:1].isalpha() else f"n-{name}").strip("-")
