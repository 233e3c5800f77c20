"""Custom::TrnQuotaCheck: fails a deployment whose instances exceed the quota, or whose quota is unknown.

The deployment fails before it launches instances. `trn preflight` runs the same check.
"""

import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError
from trainium_runtime.log import log
from trainium_runtime.quota_check import check_need
from trainium_runtime.quota_need import QuotaNeed

from .custom_resource import Result
from .rollback import is_rolling_back

_PAUSE_S = 5.0
_TIMEOUT_S = 60.0  # until a new role's permissions are effective
_SWITCH_OFF = "To deploy without this check: set trn:quota_check to off (in an app: quota_check=False)"

RESOURCE_TYPE = "Custom::TrnQuotaCheck"
LONGEST_S = 105.0
"""Seconds until a result, less than the service timeout of the custom resource."""


def provide(event: Mapping[str, Any]) -> Result:
    """Check the quota in time. An unfinished check fails the deployment too."""
    results: queue.Queue[str | None] = queue.Queue()

    def check() -> None:
        try:
            results.put(_failure(event))
        except Exception as error:  # CloudFormation needs a response
            results.put(f"quota: could not be read: {error!r}. {_SWITCH_OFF}")

    threading.Thread(target=check, daemon=True).start()
    try:
        failure = results.get(timeout=LONGEST_S)
    except queue.Empty:
        failure = f"quota: AWS gave no answer within {LONGEST_S:.0f} seconds. {_SWITCH_OFF}"
    if failure:
        raise RuntimeError(failure)
    return Result(physical_id=f"{event['ResourceProperties']['Cluster']}/quota")


def _failure(event: Mapping[str, Any]) -> str | None:
    """Why the deployment must stop. None if it may continue.

    A rollback, and an update that needs no more than before, continue without a check. An unknown result is retried for
    a minute.
    """
    need = QuotaNeed.from_properties(event["ResourceProperties"])
    if event["RequestType"] == "Update":
        earlier = QuotaNeed.from_properties(event["OldResourceProperties"])
        if not need.exceeds(earlier):
            log("the update needs no more than the cluster already has")
            return None
        need = replace(need, cluster=earlier.cluster)  # the running instances have the earlier name
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
