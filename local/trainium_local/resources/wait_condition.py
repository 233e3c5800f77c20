"""Wait conditions: a URL to signal to, and the wait for the signals."""

from __future__ import annotations

import json
import time

from trainium_local.resources.callbacks import Mailbox
from trainium_local.resources.registry import (
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)

_mailboxes: dict[str, Mailbox] = {}
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
    def create(self, request: Request) -> Provisioned:
        mailbox = _mailboxes[request.properties["Handle"]]
        wanted, timeout = int(request.properties.get("Count", 1)), float(request.properties["Timeout"])
        data: dict[str, str] = {}
        deadline = time.monotonic() + timeout
        while len(data) < wanted:
            signal = mailbox.receive(_POLL)
            if signal is None and (time.monotonic() > deadline or request.cancelled.is_set()):
                raise ProvisioningError(
                    f"WaitCondition timed out. Received {len(data)} conditions when expecting {wanted}"
                )
            if signal is None:
                continue
            if signal.get("Status") != "SUCCESS":
                raise ProvisioningError(f"WaitCondition received failed message: '{signal.get('Reason')}'")
            data[str(signal.get("UniqueId"))] = str(signal.get("Data", ""))
        return Provisioned(physical_id=request.generated_name(), attributes={"Data": json.dumps(data)})

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        raise NeedsReplacementError

    def delete(self, request: Request, current: Provisioned) -> None:
        """There is nothing but the wait."""


TYPES: dict[str, ResourceType] = {
    "AWS::CloudFormation::WaitConditionHandle": _Handle(),
    "AWS::CloudFormation::WaitCondition": _Condition(),
}
