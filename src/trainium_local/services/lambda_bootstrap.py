"""Runs in the process of one Lambda invocation: event on stdin, the handler's result in a file.

It runs as a script, not as a module of the package: the function's import path does not contain the embedded AWS.
"""

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path

AHEAD = float(os.environ.pop("TRN_LAMBDA_CLOCK_AHEAD"))
if AHEAD:
    machines_time = time.time
    time.time = lambda: machines_time() + AHEAD  # this does not change datetime.now()

RESULT = os.environ.pop("TRN_LAMBDA_RESULT")
DEADLINE = time.time() + float(os.environ.pop("TRN_LAMBDA_TIMEOUT"))


class Context:
    function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
    memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
    log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
    log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
    invoked_function_arn = os.environ.pop("TRN_LAMBDA_ARN")
    aws_request_id = os.environ.pop("TRN_LAMBDA_REQUEST_ID")

    def get_remaining_time_in_millis(self):
        return max(0, int((DEADLINE - time.time()) * 1000))


def outcome():
    try:
        sys.path.insert(0, os.environ["LAMBDA_TASK_ROOT"])
        module, function = os.environ["_HANDLER"].rsplit(".", 1)
        handler = getattr(importlib.import_module(module.replace("/", ".")), function)
        return {"payload": json.dumps(handler(json.load(sys.stdin), Context()), default=str), "failed": False}
    except BaseException as error:
        traceback.print_exc()
        described = {
            "errorMessage": str(error),
            "errorType": type(error).__name__,
            "stackTrace": traceback.format_exc().splitlines(),
        }
        return {"payload": json.dumps(described), "failed": True}


if __name__ == "__main__":
    result = outcome()
    Path(RESULT).write_text(json.dumps(result))
