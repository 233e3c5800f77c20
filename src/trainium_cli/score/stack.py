"""A CloudFormation stack of one account, followed until it rests."""

import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from trainium_cli.score.account import TEMPLATE_BUCKET, Account
from trainium_cli.score.outcome import FailedError
from trainium_core.polling import Polling
from trainium_local.environment import HOST

LARGEST_BODY = 51_200
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2


class Stack:
    """limit: the seconds that each operation may take. Every operation raises FailedError with all reasons."""

    def __init__(
        self, account: Account, name: str, *, limit: float, parameters: Mapping[str, str], capabilities: Sequence[str]
    ) -> None:
        self._account, self._name, self._limit = account, name, limit
        self._api = account.client("cloudformation")
        given = [{"ParameterKey": key, "ParameterValue": str(value)} for key, value in parameters.items()]
        self._more = {"Parameters": given, "Capabilities": list(capabilities)}
        self.id = ""

    def create(self, body: str) -> None:
        self.id = self._api.create_stack(StackName=self._name, **self._text(body), **self._more)["StackId"]
        self._wait_for("CREATE_COMPLETE")

    def update(self, body: str, tags: Mapping[str, str]) -> None:
        given = [{"Key": key, "Value": value} for key, value in tags.items()]
        self._api.update_stack(StackName=self._name, Tags=given, **self._text(body), **self._more)
        self._wait_for("UPDATE_COMPLETE")

    def delete(self) -> None:
        """Nothing happens to a stack that was never created."""
        if self.id:
            self._api.delete_stack(StackName=self.id)
            self._wait_for("DELETE_COMPLETE")

    def resources(self) -> list[dict[str, Any]]:
        pages = self._api.get_paginator("list_stack_resources").paginate(StackName=self.id)
        return [one for page in pages for one in page["StackResourceSummaries"]]

    def _wait_for(self, wanted: str) -> None:
        deadline = time.monotonic() + self._limit
        polling = Polling(time.sleep, shortest=SHORTEST_PAUSE, longest=LONGEST_PAUSE)
        while (status := self._status()).endswith("_IN_PROGRESS"):
            if time.monotonic() > deadline:
                raise FailedError(f"still {status} after {self._limit:.0f} s")
            polling.wait()
        if status != wanted:
            raise FailedError(f"{status}: {self._reasons()}")

    def _status(self) -> str:
        return self._api.describe_stacks(StackName=self.id)["Stacks"][0]["StackStatus"]

    def _reasons(self) -> str:
        pages = self._api.get_paginator("describe_stack_events").paginate(StackName=self.id)
        events = [event for page in pages for event in page["StackEvents"]]
        failed = [
            event
            for event in reversed(events)
            if event["ResourceStatus"].endswith(("_FAILED", "ROLLBACK_IN_PROGRESS"))
            and event.get("ResourceStatusReason")
        ]
        return "\n".join(
            f"{one['LogicalResourceId']} ({one['ResourceType']}): {one.get('ResourceStatusReason', '')}"
            for one in failed or events[-1:]
        )

    def _text(self, body: str) -> dict[str, str]:
        if len(body.encode()) <= LARGEST_BODY:
            return {"TemplateBody": body}
        key = sha256(body.encode()).hexdigest()
        self._account.client("s3").put_object(Bucket=TEMPLATE_BUCKET, Key=key, Body=body.encode())
        # plain moto takes a path-style address of this machine by that name alone
        address = self._account.server.connection.endpoint.replace(HOST, "localhost")
        return {"TemplateURL": f"{address}/{TEMPLATE_BUCKET}/{key}"}
