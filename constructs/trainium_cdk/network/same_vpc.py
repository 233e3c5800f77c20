"""Whether what an app gives is in the VPC of the nodes, as far as the app knows."""

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
    fix: str = "make it with that vpc",
) -> None:
    """Raise PropsError for a resource of the app whose VPC is another one than `vpc`.

    vpc_id: of the resource. None: unknown.
    """
    if vpc_id is None or vpc_id == vpc.vpc_id:
        return
    own, other = (known_vpc(Stack.of(construct), one) for one in (vpc.vpc_id, vpc_id))
    if own is None or other is None or own == other:
        return
    raise refuse(
        construct,
        parameter,
        value.node.path,
        allowed=f"what is in {vpc.node.path}, the vpc",
        fix=fix,
    )


def known_vpc(stack: Stack, vpc_id: str) -> str | None:
    """What tells a VPC from others: its id, or the path of the resource in the app. None: only the deployment knows."""
    if not Token.is_unresolved(vpc_id):
        return vpc_id
    # Two stacks may have one logical id for their VPCs, so a resolved reference says too little.
    found = _References()
    as_the_cdk_has_it: Any = found
    Tokenization.resolve(vpc_id, scope=stack, resolver=as_the_cdk_has_it, preparing=False)
    return found.paths[0] if found.paths else None


class _References(DefaultTokenResolver):
    """Notes the paths of what is referred to."""

    def __init__(self) -> None:
        super().__init__(StringConcat())
        self.paths: list[str] = []

    def resolve_token(self, t: IResolvable, context: IResolveContext, post_processor: IPostProcessor) -> Any:
        if Reference.is_reference(t):
            self.paths.append(cast(Reference, t).target.node.path)
        return super().resolve_token(t, context, post_processor)
