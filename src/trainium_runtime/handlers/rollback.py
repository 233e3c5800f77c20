"""Whether CloudFormation rolls a stack back: then a custom resource that fails leaves it in UPDATE_ROLLBACK_FAILED."""

from .log import log


def is_rolling_back(stack_id: str, *, unknown: bool = False) -> bool:
    """Whether the stack is being rolled back. `unknown`, with the reason in the log, when it cannot be read."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        (stack,) = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        log(f"the state of the stack is not known: {error}")
        return unknown
    return "ROLLBACK" in stack.get("StackStatus", "")
