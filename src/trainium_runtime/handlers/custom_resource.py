"""Custom resources of CloudFormation: their results and responses."""

import json
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_MAX_RESPONSE_BYTES = 4096  # CloudFormation documentation, response objects of custom resources


@dataclass(frozen=True, kw_only=True)
class Result:
    """A created or updated custom resource.

    Attributes:
        physical_id: Physical ID. If an update changes it, CloudFormation deletes the old resource.
        data: Attributes of the resource.
    """

    physical_id: str
    data: Mapping[str, str] = field(default_factory=dict[str, str])


@contextmanager
def explained(problem: str) -> Generator[None]:
    """Raise RuntimeError for any error, with the problem before its message."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"{problem}: {error}") from error


def respond(
    event: dict[str, Any], *, failure: str | None = None, physical_id: str, data: Mapping[str, str] | None = None
) -> None:
    """Send CloudFormation success, or failure with the reason for the stack's events.

    Args:
        event: The request of CloudFormation.
        failure: The reason, which is cut if the response would be too long. None: success.
        physical_id: Physical ID of the resource.
        data: Attributes of the resource. Default: none.

    Raises:
        OSError: CloudFormation's URL was not reached, or refused the response.
    """
    outcome: dict[str, Any] = {
        "Status": "FAILED" if failure else "SUCCESS",
        "Reason": failure or "",
        "PhysicalResourceId": physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": dict(data or {}),
    }
    body = json.dumps(outcome).encode()
    while len(body) > _MAX_RESPONSE_BYTES and outcome["Reason"]:
        outcome["Reason"] = outcome["Reason"][: len(outcome["Reason"]) * 9 // 10]
        body = json.dumps(outcome).encode()
    request = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"content-type": ""})
    with urllib.request.urlopen(request, timeout=30):
        pass
