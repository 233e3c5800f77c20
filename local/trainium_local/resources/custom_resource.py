"""Custom resources: a Lambda function of the user is asked, and its answer is waited for."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from moto.awslambda.utils import get_backend

from trainium_local.permissions import enforcement
from trainium_local.resources import api, stand_in_handlers
from trainium_local.resources.callbacks import Mailbox, middleware
from trainium_local.resources.registry import (
    CancelledError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)
from trainium_local.resources.schemas import CUSTOM_RESOURCE
from trainium_local.services import lambda_process

__all__ = ["TYPES", "CustomResource", "middleware"]

_DEFAULT_TIMEOUT = 3600  # seconds; AWS's own
_GRACE = 1.0  # seconds that an answer may come after the function crashed
_POLL = 0.05


class CustomResource:
    """Create, Update and Delete become events for the function named by ServiceToken."""

    waits = True

    def create(self, request: Request) -> Provisioned:
        nameless = Provisioned(physical_id=request.generated_name())
        return self._ask(request, "Create", nameless, {})

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        event = {"PhysicalResourceId": current.physical_id, "OldResourceProperties": as_text(previous)}
        return self._ask(request, "Update", current, event)

    def delete(self, request: Request, current: Provisioned) -> None:
        self._ask(request, "Delete", current, {"PhysicalResourceId": current.physical_id})

    def _ask(self, request: Request, kind: str, current: Provisioned, more: dict[str, Any]) -> Provisioned:
        stand_in = stand_in_handlers.stand_in(request.resource_type, request.properties)
        if stand_in is not None:
            done = stand_in(kind, request.properties, request.region, current.physical_id)
            note = "The embedded AWS did this itself, not the resource's function."
            return Provisioned(
                physical_id=done.physical_id or current.physical_id, attributes=done.attributes, note=note
            )
        with Mailbox() as mailbox:
            event = {
                "RequestType": kind,
                "ServiceToken": request.properties["ServiceToken"],
                "ResponseURL": mailbox.url,
                "StackId": request.stack_id,
                "RequestId": str(uuid.uuid4()),
                "LogicalResourceId": request.logical_id,
                "ResourceType": request.resource_type,
                "ResourceProperties": as_text(request.properties),
                **more,
            }
            answer = self._wait(request, mailbox, _start(request, event), current)
        answered = Provisioned(
            physical_id=answer.get("PhysicalResourceId") or current.physical_id,
            attributes=answer.get("Data") or {},
        )
        if answer.get("Status") != "SUCCESS":
            reason = answer.get("Reason") or "no reason given"
            raise ProvisioningError(
                f"Received response status [{answer.get('Status')}] from custom resource. Message returned: {reason}",
                leftover=answered,
            )
        return answered

    def _wait(
        self, request: Request, mailbox: Mailbox, invocation: _Invocation, current: Provisioned
    ) -> dict[str, Any]:
        timeout = float(request.properties.get("ServiceTimeout") or _DEFAULT_TIMEOUT)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and not request.cancelled.is_set():
            answer = mailbox.receive(_POLL)
            if answer is not None:
                return answer
            if invocation.crashed_before(time.monotonic() - _GRACE):
                raise ProvisioningError(invocation.complaint(), leftover=current)
        if request.cancelled.is_set():
            raise CancelledError(leftover=current)
        raise ProvisioningError(
            f"CloudFormation did not receive a response from your Custom Resource within {timeout:.0f} seconds. "
            f"The function's log says why: it has to PUT its answer to the ResponseURL of the event.",
            leftover=current,
        )


class _Invocation(threading.Thread):
    """One run of the function, beside the wait for its answer: it may answer before, in or after the run."""

    def __init__(self, run: Callable[[], Any], function_name: str) -> None:
        super().__init__(daemon=True)
        self._run_function, self._function_name = run, function_name
        self._result: Any = None
        self._ended = float("inf")

    def run(self) -> None:
        self._result = self._run_function()
        self._ended = time.monotonic()

    def crashed_before(self, moment: float) -> bool:
        return self._ended <= moment and self._result.failed

    def complaint(self) -> str:
        """What the function said when it crashed."""
        tail = "\n".join(self._result.logs.strip().splitlines()[-15:])
        return (
            f"the function {self._function_name} ended with an error before it answered: {self._result.payload}"
            f"\nThe end of its log:\n{tail}"
        )


def _start(request: Request, event: dict[str, Any]) -> _Invocation:
    token = str(request.properties["ServiceToken"])
    parts = token.split(":")
    if len(parts) < 7 or parts[2] != "lambda":
        raise ProvisioningError(f"ServiceToken must be the ARN of a Lambda function here, got {token}")
    function = get_backend(request.account, parts[3]).get_function(token)
    enforcement.refuse_invocation_by(api.acting(), function)
    invocation = _Invocation(lambda: lambda_process.run(function, event), parts[6])
    invocation.start()
    return invocation


def as_text(value: Any) -> Any:
    """CloudFormation hands every scalar to a function as text."""
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


TYPES: dict[str, ResourceType] = {CUSTOM_RESOURCE: CustomResource()}
