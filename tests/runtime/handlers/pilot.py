"""What the clock of a pilot asks besides Auto Scaling, EC2 and SNS, in memory."""

import json
from typing import Any

from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import REGION
from tests.runtime.handlers.fleet import KEEPER_ARN, NOON

STACK_ID = f"arn:aws:cloudformation:{REGION}:123456789012:stack/TrnClusterStack/0"


class Stack:
    """CloudFormation as the clock uses it: its own stack, deployed at noon. `deleted`: what was asked to go.

    refusal: why it is not deleted, such as termination protection.
    """

    def __init__(self) -> None:
        self.status = "CREATE_COMPLETE"
        self.refusal = ""
        self.deleted: list[str] = []

    def describe_stacks(self, **asked: str) -> Any:
        assert asked == {"StackName": STACK_ID}
        return {"Stacks": [{"CreationTime": NOON, "StackStatus": self.status, "StackStatusReason": "[Topic]"}]}

    def delete_stack(self, **asked: str) -> None:
        if self.refusal:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": self.refusal}}, "DeleteStack")
        self.deleted.append(asked["StackName"])


class Keeper:
    """Lambda, of which the clock calls the nodes' keeper and no other. `told`: the payloads."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def invoke(self, **asked: Any) -> None:
        assert (asked["FunctionName"], asked["InvocationType"]) == (KEEPER_ARN, "Event")
        self.told.append(json.loads(asked["Payload"]))
