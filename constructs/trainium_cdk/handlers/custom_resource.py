"""What every custom resource handler needs: the answer that CloudFormation waits for."""

import json
import urllib.request
from typing import Any

_REASON_LIMIT = 2000  # the answer as a whole may hold 4,096 bytes


def answer(
    event: dict[str, Any], *, failure: str | None = None, physical_id: str, data: dict[str, str] | None = None
) -> None:
    """Tell CloudFormation the outcome: success, or failure with the reason that the stack's events show."""
    body = json.dumps(
        {
            "Status": "FAILED" if failure else "SUCCESS",
            "Reason": (failure or "")[:_REASON_LIMIT],
            "PhysicalResourceId": physical_id,
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "Data": data or {},
        }
    ).encode()
    request = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"content-type": ""})
    with urllib.request.urlopen(request, timeout=30):
        pass
