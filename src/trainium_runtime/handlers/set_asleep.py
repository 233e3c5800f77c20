"""Puts the function's stack to sleep or wakes it, for `trn sleep` and `trn wake`.

It updates one parameter of the stack with the current template. Its callers do not need the permission to update the
stack, which would allow any template.
"""

import os
from collections.abc import Mapping
from typing import Any

_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


def handle(event: Mapping[str, Any], context: object) -> None:  # noqa: ARG001
    """Start the update, unless the stack is already in the requested state.

    Args:
        event: `asleep` is true or false.

    Raises:
        KeyError: `asleep` is missing or has another value, or the stack has no such parameter.
        ClientError: CloudFormation refused the update, for example because another is in progress.
    """
    import boto3

    cloudformation: Any = boto3.client("cloudformation")
    stack, name = os.environ["STACK_ID"], os.environ["PARAMETER"]
    value = {True: "true", False: "false"}[event["asleep"]]
    (description,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    values = {parameter["ParameterKey"]: parameter.get("ParameterValue") for parameter in description["Parameters"]}
    if values[name] == value:
        return
    cloudformation.update_stack(
        StackName=stack,
        UsePreviousTemplate=True,
        Parameters=[
            {"ParameterKey": name, "ParameterValue": value},
            *({"ParameterKey": other, "UsePreviousValue": True} for other in values if other != name),
        ],
        Capabilities=_CAPABILITIES,
    )
