"""Deletes its stack after the end of the pilot, when the controller asks for it.

The controller cannot delete the stack, because it reads what nodes write. This function checks the end itself.
"""

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trainium_runtime.aws_capacity_block import read_capacity_block
from trainium_runtime.pilot_end import Deadline, utc_text


def handle(event: Mapping[str, Any], context: object) -> None:  # noqa: ARG001
    """Delete the stack.

    Raises:
        RuntimeError: The pilot has not ended, or CloudFormation refused the deletion.
        ClientError: EC2 did not describe the Capacity Block.
    """
    import boto3
    from botocore.exceptions import ClientError

    cloudformation: Any = boto3.client("cloudformation")
    stack_id = os.environ["STACK_ID"]
    (stack,) = cloudformation.describe_stacks(StackName=stack_id)["Stacks"]
    deadline, block_id = Deadline.from_text(os.environ["ENDS"]), os.environ.get("CAPACITY_BLOCK")
    # An end at a set time does not depend on EC2.
    block = read_capacity_block(boto3.client("ec2"), block_id) if block_id and deadline.at is None else None
    ends = deadline.instant(stack["CreationTime"], block.begins if block else None)
    if datetime.fromtimestamp(time.time(), UTC) < ends:
        raise RuntimeError(f"the pilot ends at {utc_text(ends)}; its stack is not deleted before")
    try:
        cloudformation.delete_stack(StackName=stack_id)
    except ClientError as error:
        raise RuntimeError(error.response["Error"].get("Message", str(error))) from error
