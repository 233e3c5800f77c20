"""Stack outputs of the constructs."""

from collections.abc import Iterable

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from trainium_cdk.plan_stack import PlanStack
from trainium_core.nodes.next_steps import destroy_command

OUTPUTS = "Outputs"
"""ID of the scope of a construct's outputs."""


def create_outputs(scope: Construct, outputs: Iterable[tuple[str, str, str]]) -> None:
    """Create outputs, each with its name, description and value. In the scope of a stack, names have no prefix."""
    for name, description, value in outputs:
        CfnOutput(scope, name, description=description, value=value)


def plan_outputs_scope(construct: Construct) -> Construct:
    """The scope of the outputs of a plan's construct: a PlanStack, otherwise a scope in the construct, because another
    stack may have outputs of the same names."""
    stack = Stack.of(construct)
    return stack if isinstance(stack, PlanStack) else Construct(construct, OUTPUTS)


def plan_destroy_command(construct: Construct, engine: str, cluster_name: str) -> str:
    """The command that destroys the stack of a plan's construct.

    Args:
        engine: Key of the construct's stack in trn:stacks.
    """
    stack = Stack.of(construct)
    path = stack.node.path
    return destroy_command(path, engine, cluster_name) if isinstance(stack, PlanStack) else f"cdk destroy {path}"
