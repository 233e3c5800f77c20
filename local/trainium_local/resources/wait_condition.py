"""Wait conditions: a URL to signal to, and the wait for the signals."""

from __future__ import annotations

import json
from datetime import timedelta

from trainium_local import clock
from trainium_local.resources.callbacks import Mailbox
from trainium_local.resources.registry import (
    CancelledError,
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)
from trainium_local.state.kept import kept

_mailboxes: dict[str, Mailbox] = kept("wait condition handles", {})
_POLL = 0.2


class _Handle:
    def create(self, request: Request) -> Provisioned:
        mailbox = Mailbox()
        mailbox.open()
        _mailboxes[mailbox.url] = mailbox
        return Provisioned(physical_id=mailbox.url)

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        return current

    def delete(self, request: Request, current: Provisioned) -> None:
        _mailboxes.pop(current.physical_id).close()


class _Condition:
    """Without a handle it waits for nothing but its CreationPolicy."""

    waits = True

    def create(self, request: Request) -> Provisioned:
        condition = Provisioned(physical_id=request.generated_name(), attributes={"Data": "{}"})
        if "Handle" not in request.properties:
            return condition
        mailbox = _mailboxes[request.properties["Handle"]]
        wanted, timeout = int(request.properties.get("Count", 1)), float(request.properties["Timeout"])
        data: dict[str, str] = {}
        deadline = clock.now() + timedelta(seconds=timeout)
        while len(data) < wanted:
            signal = mailbox.receive(_POLL)
            if signal is None and request.cancelled.is_set():
                raise CancelledError
            if signal is None and clock.now() > deadline:
                raise ProvisioningError(
                    f"WaitCondition timed out. Received {len(data)} conditions when expecting {wanted}"
                )
            if signal is None:
                continue
            unique_id, reason = str(signal.get("UniqueId")), signal.get("Reason")
            if signal.get("Status") != "SUCCESS":
                raise ProvisioningError(f"WaitCondition received failed message: '{reason}' for uniqueId: {unique_id}")
            data[unique_id], condition.note = str(signal.get("Data", "")), reason or None
        condition.attributes["Data"] = json.dumps(data)
        return condition

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        raise NeedsReplacementError

    def delete(self, request: Request, current: Provisioned) -> None:
        """There is nothing but the wait."""


TYPES: dict[str, ResourceType] = {
    "AWS::CloudFormation::WaitConditionHandle": _Handle(),
    "AWS::CloudFormation::WaitCondition": _Condition(),
}
