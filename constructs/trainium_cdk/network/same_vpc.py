"""Checks at synthesis that resources are in the VPC of the nodes."""

from typing import Any, cast

from aws_cdk import (
    DefaultTokenResolver,
    IPostProcessor,
    IResolvable,
    IResolveContext,
    Reference,
    Stack,
    StringConcat,
    Token,
    Tokenization,
)
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IConstruct

from trainium_cdk.checks import refuse


def refuse_another_vpc(
    construct: Construct,
    parameter: str,
    value: IConstruct,
    vpc_id: str | None,
    vpc: ec2.IVpc,
    *,
    fix: str = "create it with that vpc",
) -> None:
    """Raise PropsError if the VPC of a resource is known and is not `vpc`.

    Args:
        vpc_id: VPC of the resource. None: unknown.
    """
    if vpc_id is None or vpc_id == vpc.vpc_id:
        return
    own, other = (known_vpc(Stack.of(construct), some_id) for some_id in (vpc.vpc_id, vpc_id))
    if own is None or other is None or own == other:
        return
    allowed = f"a resource in the VPC {vpc.node.path}"
    raise refuse(construct, parameter, value.node.path, allowed=allowed, fix=fix)


def known_vpc(stack: Stack, vpc_id: str) -> str | None:
    """The identity of a VPC: its id, or the path of its resource in the app. None if it is known only at the
    deployment."""
    if not Token.is_unresolved(vpc_id):
        return vpc_id
    # The VPCs of two stacks may have the same logical ID, so a resolved reference is ambiguous.
    references = _References()
    resolver: Any = references
    Tokenization.resolve(vpc_id, scope=stack, resolver=resolver, preparing=False)
    return references.paths[0] if references.paths else None


class _References(DefaultTokenResolver):
    """Records the paths of referenced resources."""

    def __init__(self) -> None:
        super().__init__(StringConcat())
        self.paths: list[str] = []

    def resolve_token(self, t: IResolvable, context: IResolveContext, post_processor: IPostProcessor) -> Any:
        if Reference.is_reference(t):
            self.paths.append(cast(Reference, t).target.node.path)
        return super().resolve_token(t, context, post_processor)
