"""The module that CloudFormation puts beside a function's source in a template: a custom resource answers with it."""

import json
import urllib.request

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(event, context, responseStatus, responseData, physicalResourceId=None, noEcho=False, reason=None):  # noqa: N803
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
