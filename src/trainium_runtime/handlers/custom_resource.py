"""The response of a custom resource."""

import json
import urllib.request
from typing import Any

_MAX_RESPONSE_BYTES = 4096  # CloudFormation documentation, response objects of custom resources


def respond(
    event: dict[str, Any], *, failure: str | None = None, physical_id: str, data: dict[str, str] | None = None
) -> None:
    """Send CloudFormation success, or failure with the reason for the stack's events.

    Args:
        event: The request of CloudFormation.
        failure: The reason, which is cut if the response would be too long. None: success.
        physical_id: Physical ID of the resource. If an update changes it, CloudFormation deletes the old resource.
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
        "Data": data or {},
    }
    body = json.dumps(outcome).encode()
    while len(body) > _MAX_RESPONSE_BYTES and outcome["Reason"]:
        outcome["Reason"] = outcome["Reason"][: len(outcome["Reason"]) * 9 // 10]
        body = json.dumps(outcome).encode()
    request = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"content-type": ""})
    with urllib.request.urlopen(request, timeout=30):
        pass
