"""CloudFormation and Lambda as a pilot's clock uses them, in memory."""

import json
from typing import Any

from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import REGION
from tests.runtime.handlers.fleet import NOON, RECONCILER_ARN

STACK_ID = f"arn:aws:cloudformation:{REGION}:123456789012:stack/TrnClusterStack/0"


class Stack:
    """CloudFormation as the clock uses it: with the stack of the clock, deployed at noon.

    Attributes:
        refusal: Why DeleteStack is refused, such as termination protection; empty if it is accepted.
        deleted: The names in accepted DeleteStack calls.
    """

    def __init__(self) -> None:
        self.status = "CREATE_COMPLETE"
        self.refusal = ""
        self.deleted: list[str] = []

    def describe_stacks(self, **parameters: str) -> Any:
        assert parameters == {"StackName": STACK_ID}
        return {"Stacks": [{"CreationTime": NOON, "StackStatus": self.status, "StackStatusReason": "[Topic]"}]}

    def delete_stack(self, **parameters: str) -> None:
        if self.refusal:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": self.refusal}}, "DeleteStack")
        self.deleted.append(parameters["StackName"])


class Reconciler:
    """Lambda as the clock uses it, which invokes only the node reconciler.

    Attributes:
        sent: The payloads.
    """

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def invoke(self, **parameters: Any) -> None:
        assert (parameters["FunctionName"], parameters["InvocationType"]) == (RECONCILER_ARN, "Event")
        self.sent.append(json.loads(parameters["Payload"]))
