"""The module that CloudFormation adds to inline source code. Custom resources respond with it."""

import json
import urllib.request
from typing import Any

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(
    event: dict[str, Any],
    context: Any,
    responseStatus: str,  # noqa: N803
    responseData: dict[str, Any],  # noqa: N803
    physicalResourceId: str | None = None,  # noqa: N803
    noEcho: bool = False,  # noqa: N803
    reason: str | None = None,
) -> None:
    answer = {
        "Status": responseStatus,
        "Reason": reason or f"See the details in CloudWatch Log Stream: {context.log_stream_name}",
        "PhysicalResourceId": physicalResourceId or context.log_stream_name,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "NoEcho": noEcho,
        "Data": responseData,
    }
    body = json.dumps(answer).encode()
    try:
        urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], body, {"Content-Type": ""}, method="PUT"))
    except Exception as error:
        print("send(..) failed executing request:", error)
