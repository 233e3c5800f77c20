"""The signals that a CreationPolicy waits for."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from trainium_local import clock
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.resources.registry import CancelledError, ProvisioningError

_DEFAULT_TIMEOUT = "PT5M"  # AWS's own
_DURATION = re.compile(r"PT(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?")
_POLL = 0.05

_listeners: list[Callable[[Stack, StackResource], None]] = []


def when_created(listener: Callable[[Stack, StackResource], None]) -> None:
    """Call `listener` with every resource that is created, before its signals are waited for."""
    _listeners.append(listener)


def policy(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The ResourceSignal of the resource's CreationPolicy."""
    return (definition.get("CreationPolicy") or {}).get("ResourceSignal")


def receive(stack: Stack, logical_id: str, unique_id: str, status: str, note: str = "") -> None:
    """Take a signal, SUCCESS or FAILURE, once for each `unique_id`. Raises ValidationError if nothing waits for it."""
    resource = stack.resources.get(logical_id)
    if resource is None:
        raise ValidationError(f"Resource {logical_id} does not exist for stack {stack.name}")
    if policy(resource.definition) is None or resource.status not in ("", "CREATE_IN_PROGRESS"):
        raise ValidationError(f"Resource {logical_id} of stack {stack.name} is not waiting for signals")
    resource.signals.setdefault(unique_id, status)
    reason = f"Received {status} signal with UniqueId {unique_id}"
    reason = f"{reason}. {note}" if note else reason
    stack.record_resource(logical_id, resource.resource_type, "CREATE_IN_PROGRESS", reason)


def wait(stack: Stack, resource: StackResource) -> None:
    """Wait as long as the CreationPolicy says. Raises ProvisioningError for a failure or too few signals."""
    for listener in _listeners:
        listener(stack, resource)
    wanted = policy(resource.definition)
    if wanted is None:
        return
    deadline = clock.now() + _duration(str(wanted.get("Timeout", _DEFAULT_TIMEOUT)))
    while True:
        missing = int(wanted.get("Count", 1)) - len(resource.signals)
        failed = next((name for name, status in resource.signals.items() if status == "FAILURE"), None)
        if failed is not None:
            raise ProvisioningError(f"Received FAILURE signal with UniqueId {failed}")
        if missing <= 0:
            return
        if clock.now() >= deadline:
            raise ProvisioningError(f"Failed to receive {missing} resource signal(s) within the specified duration")
        stack.answerable.set()
        if stack.cancelled.wait(_POLL) or stack.cancelled.is_set():
            raise CancelledError


def _duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ProvisioningError(f"CreationPolicy Timeout {text} is not an ISO 8601 duration such as PT5M")
    return timedelta(**{unit: int(number) for unit, number in found.groupdict(default="0").items()})
