"""Custom::TrnQuotaGate: fails a deployment whose instances exceed the quota, or whose quota is unknown.

The deployment fails before it launches instances. `trn preflight` runs the same check.
"""

import queue
import threading
import time
from typing import Any

from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError
from trainium_runtime.quota_check import check_need
from trainium_runtime.quota_need import QuotaNeed

from .custom_resource import respond
from .log import log
from .rollback import is_rolling_back

_PAUSE_S = 5.0
_TIMEOUT_S = 60.0  # until a new role's permissions are effective
_MARGIN_S = 15.0  # for the response to CloudFormation, before Lambda stops the function
_SWITCH_OFF = "To deploy without this check: set trn:quota_check to off (in an app: quota_check=False)"


def handle(event: dict[str, Any], context: Any) -> None:
    if event["RequestType"] == "Delete":
        respond(event, physical_id=event["PhysicalResourceId"])
        return
    seconds = context.get_remaining_time_in_millis() / 1000 - _MARGIN_S
    physical_id = f"{event['ResourceProperties']['Cluster']}/quota"
    respond(event, failure=failure_in_time(event, seconds), physical_id=physical_id)


def failure_in_time(event: dict[str, Any], seconds: float) -> str | None:
    """Why the deployment must stop. None if it may continue.

    Args:
        event: The request of CloudFormation.
        seconds: The time limit. An unfinished check is a reason to stop.
    """
    results: queue.Queue[str | None] = queue.Queue()

    def check() -> None:
        try:
            results.put(failure(event))
        except Exception as error:  # CloudFormation needs a response
            results.put(f"quota: could not be read: {error!r}. {_SWITCH_OFF}")

    threading.Thread(target=check, daemon=True).start()
    try:
        return results.get(timeout=max(seconds, 0))
    except queue.Empty:
        return f"quota: AWS gave no answer within {seconds:.0f} seconds. {_SWITCH_OFF}"


def failure(event: dict[str, Any]) -> str | None:
    """Why the deployment must stop. None if it may continue.

    A rollback, and an update that needs no more than before, continue without a check. An unknown result is retried for
    a minute.
    """
    need = QuotaNeed.from_properties(event["ResourceProperties"])
    if event["RequestType"] == "Update" and not need.exceeds(QuotaNeed.from_properties(event["OldResourceProperties"])):
        log("the update needs no more than the cluster already has")
        return None
    if is_rolling_back(event["StackId"]):
        log("quotas are not checked in a rollback")
        return None
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        result = _check_account(need)
        log(f"{result.outcome}: {result.found}")
        if result.outcome == "pass":
            return None
        if result.outcome == "fail":
            return f"quota: {result.found}; {result.needed} are needed. To continue: {result.fix}"
        if time.monotonic() + _PAUSE_S > deadline:
            return f"quota: unknown whether it is sufficient: {result.found}. {_SWITCH_OFF}"
        time.sleep(_PAUSE_S)


def _check_account(need: QuotaNeed) -> CheckResult:
    from trainium_runtime.aws_quotas import AwsQuotas

    try:
        return check_need(need, AwsQuotas(need.region))
    except UnavailableError as error:
        return CheckResult(outcome="unknown", found=error.reason)
