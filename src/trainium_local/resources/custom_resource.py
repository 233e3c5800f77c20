"""Custom resources: invokes the Lambda function of the user, and waits for its response."""

import threading
import time
import uuid
from typing import Any

from moto.awslambda.utils import get_backend

from trainium_local.permissions import enforcement
from trainium_local.resources import api, callbacks, cdk_handlers
from trainium_local.resources.registry import (
    CancelledError,
    Properties,
    Provisioned,
    ProvisioningError,
    ResourceRequest,
    ResourceType,
)
from trainium_local.resources.schemas import CUSTOM_RESOURCE
from trainium_local.services import lambda_process

_DEFAULT_TIMEOUT = 3600  # seconds, as on AWS
_GRACE = 1.0  # seconds to wait for a response after the invocation failed
_POLL = 0.05  # seconds


class CustomResource(ResourceType):
    """Sends Create, Update and Delete events to the function in ServiceToken."""

    def create(self, request: ResourceRequest) -> Provisioned:
        generated = Provisioned(physical_id=request.generated_name())
        return self._invoke(request, "Create", generated, {})

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        event = {"PhysicalResourceId": current.physical_id, "OldResourceProperties": as_text(previous)}
        return self._invoke(request, "Update", current, event)

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        self._invoke(request, "Delete", current, {"PhysicalResourceId": current.physical_id})

    def _invoke(self, request: ResourceRequest, kind: str, current: Provisioned, more: dict[str, Any]) -> Provisioned:
        if not request.properties.get("ServiceToken"):
            message = "#: required key [ServiceToken] not found"
            raise ProvisioningError(
                f"Properties validation failed for resource {request.logical_id} with message: {message}"
            )
        handler = cdk_handlers.find(request)
        if handler is not None:
            return handler(kind, request.properties, request.region, current.physical_id)
        url = callbacks.open_mailbox()
        try:
            event = {
                "RequestType": kind,
                "ServiceToken": request.properties["ServiceToken"],
                "ResponseURL": url,
                "StackId": request.stack_id,
                "RequestId": str(uuid.uuid4()),
                "LogicalResourceId": request.logical_id,
                "ResourceType": request.resource_type,
                "ResourceProperties": as_text(request.properties),
                **more,
            }
            answer = _wait(request, url, _start(request, event), current)
            _check(event, answer, current)
        finally:
            callbacks.close_mailbox(url)
        answered = Provisioned(
            physical_id=answer.get("PhysicalResourceId") or current.physical_id,
            attributes=answer.get("Data") or {},
        )
        if answer.get("Status") != "SUCCESS":
            reason = answer.get("Reason") or "no reason reported"
            raise ProvisioningError(
                f"Received response status [{answer.get('Status')}] from custom resource. Message returned: {reason}",
                leftover=answered,
            )
        return answered


def _check(event: dict[str, Any], answer: dict[str, Any], current: Provisioned) -> None:
    """Raise ProvisioningError for a successful response that CloudFormation does not accept."""
    if answer.get("Status") != "SUCCESS":
        return
    wrong = [name for name in ("StackId", "RequestId", "LogicalResourceId") if answer.get(name) != event[name]]
    reason = f"Invalid response: {', '.join(wrong)} must be copied from the request" if wrong else ""
    if not isinstance(answer.get("PhysicalResourceId"), str) or not answer["PhysicalResourceId"]:
        reason = "Invalid PhysicalResourceId"
    if reason:
        raise ProvisioningError(reason, leftover=current)


def _wait(
    request: ResourceRequest, url: str, ended: list[lambda_process.LambdaInvocation], current: Provisioned
) -> dict[str, Any]:
    """Wait for the response, which may arrive before or after the invocation ends.

    `ended` is filled when the invocation ends.
    """
    timeout = float(request.properties.get("ServiceTimeout") or _DEFAULT_TIMEOUT)
    deadline = time.monotonic() + timeout
    crash: lambda_process.LambdaInvocation | None = None
    while time.monotonic() < deadline and not request.cancelled.is_set():
        answer = callbacks.receive(url, _POLL)
        if answer is not None:
            return answer
        if crash is None and ended and ended[0].failed:
            crash, deadline = ended[0], time.monotonic() + _GRACE
    if request.cancelled.is_set():
        raise CancelledError(leftover=current)
    if crash is not None:
        name = str(request.properties["ServiceToken"]).split(":")[6]
        tail = "\n".join(crash.logs.strip().splitlines()[-15:])
        reason = f"the function {name} ended with an error before it sent its response: {crash.payload}"
        raise ProvisioningError(f"{reason}\nThe end of its log:\n{tail}", leftover=current)
    raise ProvisioningError(
        f"CloudFormation did not receive a response from your Custom Resource within {timeout:.0f} seconds. "
        "The function must PUT its response to the ResponseURL of the event; see its log.",
        leftover=current,
    )


def _start(request: ResourceRequest, event: dict[str, Any]) -> list[lambda_process.LambdaInvocation]:
    token = str(request.properties["ServiceToken"])
    parts = token.split(":")
    if len(parts) < 7 or parts[2] != "lambda":
        raise ProvisioningError(f"In the embedded AWS, ServiceToken must be the ARN of a Lambda function, got {token}")
    function = get_backend(request.account, parts[3]).get_function(token)
    enforcement.refuse_invocation_by(api.acting(), function)
    ended: list[lambda_process.LambdaInvocation] = []
    threading.Thread(target=lambda: ended.append(lambda_process.run(function, event)), daemon=True).start()
    return ended


def as_text(value: Any) -> Any:
    """Return the value with every scalar as text, as CloudFormation passes it to a function."""
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class _Metadata(ResourceType):
    """AWS::CDK::Metadata. It creates nothing, as on AWS."""

    def create(self, request: ResourceRequest) -> Provisioned:
        return Provisioned(physical_id=request.logical_id)


TYPES: dict[str, ResourceType] = {CUSTOM_RESOURCE: CustomResource(), "AWS::CDK::Metadata": _Metadata()}
