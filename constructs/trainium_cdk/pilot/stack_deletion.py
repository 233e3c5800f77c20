"""The function that deletes the stack at the end of its pilot."""

from aws_cdk import Stack
from constructs import Construct

from trainium_cdk.handler_function import HandlerFunction
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
        """
        stack_id = Stack.of(scope).stack_id
        # In UTC, because Lambda may not have a time zone database.
        environment = {"STACK_ID": stack_id, "ENDS": str(ends)}
        if capacity_block_id is not None:
            environment["CAPACITY_BLOCK"] = capacity_block_id
        super().__init__(scope, construct_id, handler="stack_deletion", timeout_minutes=1, environment=environment)
        self.allow(actions=["cloudformation:DeleteStack", "cloudformation:DescribeStacks"], resources=[stack_id])
        if capacity_block_id is not None:
            self.allow_reading(["ec2:DescribeCapacityReservations"])
