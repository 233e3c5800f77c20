"""Custom::TrnQuotaGate: fails a deployment before any instance is asked for when the quota has no room for them.

Asks and judges with the check of `trn preflight`, so that both say the same.
"""

import queue
import threading
import time
from typing import Any

from .custom_resource import answer
from .rollback import is_rolling_back

_PAUSE_S = 5.0
_PATIENCE_S = 60.0  # a new role's permissions take a while to reach every service
_MARGIN_S = 15.0  # for the answer to CloudFormation, before Lambda stops the function
_SWITCH_OFF = "To deploy without asking: set trn:quota_gate to off"


def handle(event: dict[str, Any], context: Any) -> None:
    if event["RequestType"] == "Delete":
        answer(event, physical_id=event["PhysicalResourceId"])
        return
    seconds = context.get_remaining_time_in_millis() / 1000 - _MARGIN_S
    physical_id = f"{event['ResourceProperties']['Cluster']}/quota"
    answer(event, failure=obstacle_in_time(event, seconds), physical_id=physical_id)


def obstacle_in_time(event: dict[str, Any], seconds: float) -> str | None:
    """Why the deployment must not go on; None when it may. Comes within `seconds`, whatever AWS does."""
    told: queue.Queue[str | None] = queue.Queue()

    def ask() -> None:
        try:
            told.put(obstacle(event))
        except Exception as error:  # CloudFormation must hear of it, whatever it is
            told.put(f"quota: could not be asked for: {error!r}. {_SWITCH_OFF}")

    threading.Thread(target=ask, daemon=True).start()
    try:
        return told.get(timeout=max(seconds, 0))
    except queue.Empty:
        return f"quota: AWS gave no answer within {seconds:.0f} seconds. {_SWITCH_OFF}"


def obstacle(event: dict[str, Any]) -> str | None:
    """What check_need says against the deployment. What is unknown is asked again for a while."""
    from trainium_runtime.quota import QuotaNeed

    need = QuotaNeed.from_properties(event["ResourceProperties"])
    if event["RequestType"] == "Update" and not need.exceeds(QuotaNeed.from_properties(event["OldResourceProperties"])):
        print("the update needs no more than the cluster has already")
        return None
    if is_rolling_back(event["StackId"]):
        print("a rollback is not asked whether there is room")
        return None
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        found = _ask_account(need)
        print(f"{found.outcome}: {found.found}")
        if found.outcome == "pass":
            return None
        if found.outcome == "fail":
            return f"quota: {found.found}; {found.needed} are needed. To go on: {found.fix}"
        if time.monotonic() + _PAUSE_S > give_up:
            return f"quota: could not tell whether there is room: {found.found}. {_SWITCH_OFF}"
        time.sleep(_PAUSE_S)


def _ask_account(need: Any) -> Any:
    from trainium_runtime.answer import Answer
    from trainium_runtime.aws_quotas import AwsQuotas
    from trainium_runtime.errors import UnavailableError
    from trainium_runtime.quota_check import check_need

    try:
        return check_need(need, AwsQuotas(need.region))
    except UnavailableError as error:
        return Answer(outcome="unknown", found=str(error))
