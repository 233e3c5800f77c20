"""Drift: what a service returns for a resource now, against what the template made of it, in the shapes of the API.

Only what the service gives back is compared. What was not compared completely is NOT_CHECKED, not IN_SYNC.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from trainium_local import clock
from trainium_local.cloudformation.deletion import make_request
from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.resources import api
from trainium_local.resources.registry import Readable

Json = dict[str, Any]

_UNKNOWN = object()
_DRIFTED = {"MODIFIED", "DELETED"}


def detect(stack: Stack, resource: StackResource) -> Json:
    """A StackResourceDrift; never raises."""
    status, found = _compared_with_service(stack, resource)
    return {
        "StackId": stack.stack_id,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.resource_type,
        "ExpectedProperties": json.dumps(resource.properties),
        "StackResourceDriftStatus": status,
        "Timestamp": clock.now(),
        **found,
    }


def detection(stack: Stack) -> Json:
    """The status of a detection, as DescribeStackDriftDetectionStatus returns it."""
    return {
        "StackId": stack.stack_id,
        "StackDriftDetectionId": str(uuid.uuid4()),
        "StackDriftStatus": stack_status(stack.drifts.values()),
        "DetectionStatus": "DETECTION_COMPLETE",
        "DriftedStackResourceCount": sum(one["StackResourceDriftStatus"] in _DRIFTED for one in stack.drifts.values()),
        "Timestamp": clock.now(),
    }


def stack_status(drifts: Iterable[Json]) -> str:
    """The status of a stack with these resources; UNKNOWN if one could not be checked and none has drifted."""
    found = {drift["StackResourceDriftStatus"] for drift in drifts}
    return "DRIFTED" if found & _DRIFTED else "UNKNOWN" if "NOT_CHECKED" in found else "IN_SYNC"


def _compared_with_service(stack: Stack, resource: StackResource) -> tuple[str, Json]:
    if not isinstance(resource.provisioner, Readable):
        return "NOT_CHECKED", {"DriftStatusReason": "The embedded AWS cannot read this resource back."}
    try:
        found = resource.provisioner.read(make_request(stack, resource), resource.physical_id)
    except Exception as error:
        return "NOT_CHECKED", {"DriftStatusReason": api.words(error)}
    if found is None:
        return "DELETED", {}
    compared = list(_compare(resource.properties, found.properties, ""))
    unknown = [path for path, difference in compared if difference is None]
    differences = [difference for _, difference in compared if difference is not None]
    return "MODIFIED" if differences else "NOT_CHECKED" if unknown else "IN_SYNC", {
        "ActualProperties": json.dumps(found.properties, default=str),
        "PropertyDifferences": differences,
        "DriftStatusReason": f"Not given back: [{', '.join(unknown)}]" if unknown else None,
    }


def _compare(expected: Any, actual: Any, path: str) -> Iterator[tuple[str, Json | None]]:
    """Paths with their PropertyDifference, None where nothing was given back."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name, value in expected.items():
            yield from _compare(value, actual.get(name, _UNKNOWN), f"{path}/{name}")
    elif actual is _UNKNOWN or "{{resolve:" in str(expected):
        yield path, None
    elif _plain(expected) != _plain(actual):
        values = {"ExpectedValue": json.dumps(expected), "ActualValue": json.dumps(actual, default=str)}
        kind = "REMOVE" if actual is None else "NOT_EQUAL"
        yield path, {"PropertyPath": path, "DifferenceType": kind, **values}


def _plain(value: Any) -> Any:
    """Lists without their order, scalars as text: CloudFormation turns them into one another."""
    if isinstance(value, list):
        return sorted((_plain(item) for item in value), key=repr)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return json.dumps(value) if isinstance(value, bool) else str(value)
