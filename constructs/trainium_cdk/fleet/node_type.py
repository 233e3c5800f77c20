"""The instance type and the number of nodes in a construct's parameters."""

from collections.abc import Sequence

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import check, check_known, form, is_pending, refuse
from trainium_cdk.fleet.capacity import Capacity
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.rules.instance_type import known_type, region_in_catalog, region_with_type
from trainium_core.plan.rules.nodes import block_nodes, nodes_with_efa
from trainium_core.problems import Problem

_REGION = "the region of the stack"

_WHILE_PENDING = "trn1.32xlarge"
"""The type during the synthesis before the CDK CLI has looked up the actual one. It has EFA and every purchase
option."""


def checked_type(construct: Construct, instance_type: ec2.InstanceType, catalog: Catalog | None) -> InstanceType:
    """The catalogue's entry for a type. Raises PropsError for an unknown type, a CDK token, and a type that the region
    does not offer."""
    name, known = instance_type.to_string(), catalog or builtin_catalog()
    if is_pending(name):
        return known.get(_WHILE_PENDING, next(iter(known.values())))
    check_known(construct, "instance_type", name, why="network cards and checks of the nodes depend on it")
    check(construct, known_type(name, known, field="instance_type", catalog_field="catalog"))
    kind, region = known[name], Stack.of(construct).region
    if not Token.is_unresolved(region):
        check(construct, region_in_catalog(region, known, field=_REGION))
        check(construct, region_with_type(kind, region, known, field=_REGION))
    return kind


def node_count_problems(
    construct: Construct, nodes: int, kind: InstanceType, capacity: Capacity, catalog: Catalog | None
) -> Sequence[Problem]:
    """The problems of the number of nodes. Raises PropsError for a CDK token."""
    check_known(construct, "nodes", nodes, why="it is compared with quota, subnet and capacity")
    return [*form("nodes", nodes)] or [
        *nodes_with_efa(nodes, kind, catalog or builtin_catalog(), field="nodes"),
        *block_nodes(nodes, capacity.kind, field="nodes"),
    ]


def check_secondary_interfaces(construct: Construct, interface_type: str | None, node: NodeSettings) -> None:
    """Raise PropsError if `secondary_interface_type` is invalid, or given and the type has only one network card."""
    check(construct, form("secondary_interface_type", interface_type))
    if interface_type is not None and len(node.network_interfaces) == 1:
        allowed = f"nothing on {node.type.name}, which has one network card"
        raise refuse(construct, "secondary_interface_type", interface_type, allowed=allowed, fix="remove it")
