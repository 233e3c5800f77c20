"""What every custom resource handler needs: the answer that CloudFormation waits for."""

import json
import urllib.request
from typing import Any

_LONGEST_ANSWER = 4096  # bytes; CloudFormation documentation, response objects of custom resources


def answer(
    event: dict[str, Any], *, failure: str | None = None, physical_id: str, data: dict[str, str] | None = None
) -> None:
    """Tell CloudFormation the outcome: success, or failure with the reason that the stack's events show."""
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
    while len(body) > _LONGEST_ANSWER and outcome["Reason"]:
        outcome["Reason"] = outcome["Reason"][: len(outcome["Reason"]) * 9 // 10]
        body = json.dumps(outcome).encode()
    request = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"content-type": ""})
    with urllib.request.urlopen(request, timeout=30):
        pass
