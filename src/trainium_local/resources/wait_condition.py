"""Wait conditions: a URL to signal to, and the wait for the signals."""

import json
from datetime import timedelta

from trainium_local import clock
from trainium_local.resources import callbacks
from trainium_local.resources.registry import (
    CancelledError,
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)

_POLL = 0.2


class _Handle(ResourceType):
    def create(self, request: Request) -> Provisioned:
        return Provisioned(physical_id=callbacks.open_mailbox())

    def delete(self, request: Request, current: Provisioned) -> None:
        callbacks.close_mailbox(current.physical_id)


class _Condition(ResourceType):
    """Without a handle it waits for nothing but its CreationPolicy."""

    waits = True

    def create(self, request: Request) -> Provisioned:
        condition = Provisioned(physical_id=request.generated_name(), attributes={"Data": "{}"})
        if "Handle" not in request.properties:
            return condition
        wanted, timeout = int(request.properties.get("Count", 1)), float(request.properties["Timeout"])
        data: dict[str, str] = {}
        deadline = clock.now() + timedelta(seconds=timeout)
        while len(data) < wanted:
            signal = callbacks.receive(request.properties["Handle"], _POLL)
            if signal is not None:
                unique_id, reason = str(signal.get("UniqueId")), signal.get("Reason")
                if signal.get("Status") != "SUCCESS":
                    failed = f"WaitCondition received failed message: '{reason}' for uniqueId: {unique_id}"
                    raise ProvisioningError(failed)
                data[unique_id], condition.note = str(signal.get("Data", "")), reason or None
            elif request.cancelled.is_set():
                raise CancelledError
            elif clock.now() > deadline:
                late = f"WaitCondition timed out. Received {len(data)} conditions when expecting {wanted}"
                raise ProvisioningError(late)
        condition.attributes["Data"] = json.dumps(data)
        return condition

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        raise NeedsReplacementError


class _Metadata(ResourceType):
    """Provisions nothing on AWS either."""

    def create(self, request: Request) -> Provisioned:
        return Provisioned(physical_id=request.logical_id)


TYPES: dict[str, ResourceType] = {
    "AWS::CDK::Metadata": _Metadata(),
    "AWS::CloudFormation::WaitConditionHandle": _Handle(),
    "AWS::CloudFormation::WaitCondition": _Condition(),
}
