"""Whether a stack is being rolled back. In a rollback, a failed custom resource leads to UPDATE_ROLLBACK_FAILED."""

from trainium_runtime.log import log


def is_rolling_back(stack_id: str, *, unknown: bool = False) -> bool:
    """Whether the stack is being rolled back, or was rolled back by its last operation.

    Args:
        unknown: The result if the stack cannot be read. The reason is logged.
    """
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        (stack,) = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        log(f"the state of the stack is unknown: {error}")
        return unknown
    return "ROLLBACK" in stack.get("StackStatus", "")
