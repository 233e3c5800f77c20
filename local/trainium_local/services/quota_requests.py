"""Requests for higher quotas, which moto lacks. They stay PENDING: nobody here grants one.

The requests of a region live on its backend of Service Quotas, so that they go when the backend is reset.
"""

import json
import time
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.moto_api._internal import mock_random

from trainium_local.services.service_quotas import page_of, parameters, quota_of, quotas

OPEN = ("PENDING", "CASE_OPENED")


def request_service_quota_increase(response: Any) -> str:
    asked = parameters(response)
    service, code, desired = asked["ServiceCode"], asked["QuotaCode"], float(asked["DesiredValue"])
    default = quota_of(quotas(response, service, applied=False), code)
    quota = next((q for q in quotas(response, service, applied=True) if q["QuotaCode"] == code), default)
    if any(entry["Status"] in OPEN for entry in _history(response, service, code)):
        raise JsonRESTError(
            "ResourceAlreadyExistsException", "Only one open service quota increase request is allowed per quota."
        )
    if desired <= quota["Value"]:
        raise JsonRESTError(
            "IllegalArgumentException", "You must provide a quota value greater than the current quota value."
        )
    now = time.time()
    request = {
        "Id": mock_random.get_random_hex(32),
        "DesiredValue": desired,
        "Status": "PENDING",
        "Created": now,
        "LastUpdated": now,
        "Requester": json.dumps({"accountId": response.current_account}),
        **{key: quota[key] for key in ("ServiceCode", "ServiceName", "QuotaCode", "QuotaName", "QuotaArn")},
        **{key: quota[key] for key in ("GlobalQuota", "Unit")},
    }
    _requests(response).append(request)
    return json.dumps({"RequestedQuota": request})


def list_requested_service_quota_change_history_by_quota(response: Any) -> str:
    asked = parameters(response)
    return page_of(response, "RequestedQuotas", _history(response, asked["ServiceCode"], asked["QuotaCode"]))


def _history(response: Any, service: str, code: str) -> list[dict[str, Any]]:
    status = parameters(response).get("Status")
    return [
        request
        for request in _requests(response)
        if (request["ServiceCode"], request["QuotaCode"]) == (service, code) and status in (None, request["Status"])
    ]


def _requests(response: Any) -> list[dict[str, Any]]:
    return vars(response.backend).setdefault("quota_requests", [])
