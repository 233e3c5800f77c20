"""The function that deletes the stack at the end of its pilot."""

import re
from collections.abc import Iterator
from typing import Any

import jsii
from aws_cdk import Annotations, CfnDeletionPolicy, CfnResource, Stack, TagManager
from constructs import Construct, IValidation

from trainium_cdk.checks import refuse
from trainium_cdk.handler_function import HandlerFunction
from trainium_core.stacks.containers import Container, containers, must_be_empty
from trainium_runtime.pilot_end import Deadline


class StackDeletion(HandlerFunction):
    """A function that deletes its stack, only after the end of the pilot. The controller invokes it.

    CloudFormation deletes the stack with the role that deployed it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, ends: Deadline, capacity_block_id: str | None) -> None:
        """
        Args:
            ends: The end of the pilot.
            capacity_block_id: The Capacity Block of the nodes, from whose start a duration counts; None without one.

        Raises:
            PropsError: The stack is nested.
        """
        stack = Stack.of(scope)
        if stack.nested:
            allowed, fix = (
                "destroy in a stack that is not nested",
                "put the fleet into a separate stack, or choose sleep",
            )
            raise refuse(scope, "end", "destroy in a nested stack", allowed=allowed, fix=fix)
        # In UTC, because Lambda may not have a time zone database.
        environment = {"STACK_ID": stack.stack_id, "ENDS": str(ends)}
        if capacity_block_id is not None:
            environment["CAPACITY_BLOCK"] = capacity_block_id
        super().__init__(scope, construct_id, handler="stack_deletion", timeout_minutes=1, environment=environment)
        self.allow(actions=["cloudformation:DeleteStack", "cloudformation:DescribeStacks"], resources=[stack.stack_id])
        if capacity_block_id is not None:
            self.allow_reading(["ec2:DescribeCapacityReservations"])
        validation: Any = _CanBeDeleted(stack)
        self.node.add_validation(validation)


@jsii.implements(IValidation)
class _CanBeDeleted:
    """Rejects a stack with termination protection, and warns of resources whose content blocks the deletion.

    The app may add both after it creates the fleet.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        for resource, container in _blocking(self._stack):
            fix = f"set {container.parameter}" if container.parameter else "empty it before the end"
            Annotations.of(resource).add_warning_v2(
                "trn:end.content",
                f"the pilot ends with the deletion of the stack, which fails if this {container.name} is not empty "
                f"then; {fix}, or retain it with removal_policy=RemovalPolicy.RETAIN",
            )
        if not self._stack.termination_protection:
            return []
        return [
            "end: got destroy with termination_protection=True; allowed: destroy in a stack that can be "
            "deleted; fix: remove termination_protection, or choose sleep"
        ]


def _blocking(stack: Stack) -> Iterator[tuple[CfnResource, Container]]:
    """The resources that CloudFormation deletes with a stack only if they are empty, and that nothing empties."""
    for resource in stack.node.find_all():
        if not isinstance(resource, CfnResource):
            continue
        kind = resource.cfn_resource_type
        container = containers().get(kind)
        if container is None or resource.cfn_options.deletion_policy not in (None, CfnDeletionPolicy.DELETE):
            continue
        tags = TagManager.of(resource)
        values: dict[str, Any] = stack.resolve(tags.tag_values()) if tags else {}
        properties: dict[str, Any] = {"Tags": [{"Key": key, "Value": value} for key, value in values.items()]}
        if container.setting:
            properties[container.setting] = getattr(resource, _attribute(container.setting), None)
        if must_be_empty({"Type": kind, "Properties": properties}):
            yield resource, container


def _attribute(setting: str) -> str:
    """The attribute of the CDK's construct for a property of CloudFormation."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", setting).lower()
