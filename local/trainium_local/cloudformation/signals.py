"""The signals that a CreationPolicy waits for. A stand-in sends those of the instances, on which nothing runs."""

import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from trainium_local import clock
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.resources import api, callbacks
from trainium_local.resources.registry import CancelledError, ProvisioningError
from trainium_local.user_data import texts

_DEFAULT_TIMEOUT = "PT5M"  # AWS's own
_DURATION = re.compile(r"PT(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?")
_POLL = 0.05
_STAND_IN = "Sent by a stand-in of the embedded AWS: nothing runs on the instance."

_stand_in = [True]


def use_stand_in(used: bool) -> None:
    """Whether the embedded AWS signals for the instances whose user data say that they would."""
    _stand_in[0] = used


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
    wanted = policy(resource.definition)
    if _stand_in[0] and (wanted is not None or callbacks.expected()):
        _stand_in_for_instances(stack, resource)
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


def _stand_in_for_instances(stack: Stack, resource: StackResource) -> None:
    for instance_id in _instances(resource, stack.region):
        user_data = "\n".join(texts(_user_data(instance_id, stack.region)))
        if "cfn-signal" in user_data and policy(resource.definition) is not None:
            receive(stack, resource.logical_id, instance_id, "SUCCESS", _STAND_IN)
        for url in callbacks.urls_in(user_data):
            callbacks.deliver(url, {"Status": "SUCCESS", "UniqueId": instance_id, "Reason": _STAND_IN})


def _instances(resource: StackResource, region: str) -> list[str]:
    if resource.resource_type == "AWS::EC2::Instance":
        return [resource.physical_id]
    if resource.resource_type != "AWS::AutoScaling::AutoScalingGroup":
        return []
    names = {"AutoScalingGroupNames": [resource.physical_id]}
    groups = api.call("autoscaling", "DescribeAutoScalingGroups", region, names)["AutoScalingGroups"]
    return [instance["InstanceId"] for group in groups for instance in group["Instances"]]


def _user_data(instance_id: str, region: str) -> bytes:
    wanted = {"InstanceId": instance_id, "Attribute": "userData"}
    try:
        return b64decode(api.call("ec2", "DescribeInstanceAttribute", region, wanted)["UserData"].get("Value", ""))
    except ClientError:  # only a record of the instance is kept
        return b""
