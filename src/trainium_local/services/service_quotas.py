"""Service Quotas for EC2, EBS and SageMaker, and quota increase requests, which moto lacks.

Requests stay PENDING.
"""

import json
import time
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.moto_api._internal import mock_random
from moto.servicequotas.exceptions import NoSuchResource

from trainium_core.facts import facts
from trainium_local.seeds.sagemaker_quotas import sagemaker_quotas
from trainium_local.seeds.vcpu_quotas import vcpu_quotas
from trainium_local.services.vcpu_use import usage_metric

_NAMES = {
    "ebs": "Amazon Elastic Block Store (Amazon EBS)",
    "ec2": "Amazon Elastic Compute Cloud (Amazon EC2)",
    "sagemaker": "Amazon SageMaker",
}

Quota = dict[str, Any]


def get_service_quota(response: Any) -> str:
    return json.dumps({"Quota": _requested_quota(response, applied=True)})


def get_aws_default_service_quota(response: Any) -> str:
    return json.dumps({"Quota": _requested_quota(response, applied=False)})


def list_service_quotas(response: Any) -> str:
    return _quota_page(response, "Quotas", _quotas(response, applied=True))


def list_aws_default_service_quotas(response: Any) -> str:
    return _quota_page(response, "Quotas", _quotas(response, applied=False))


def request_service_quota_increase(response: Any) -> str:
    desired, default = float(response._get_param("DesiredValue")), _requested_quota(response, applied=False)
    quota = next((q for q in _quotas(response, applied=True) if q["QuotaCode"] == default["QuotaCode"]), default)
    if _requests(response):
        raise JsonRESTError(
            "ResourceAlreadyExistsException", "Only one open service quota increase request is allowed per quota."
        )
    if desired <= quota["Value"]:
        raise JsonRESTError(
            "IllegalArgumentException", "You must provide a quota value greater than the current quota value."
        )
    now = time.time()
    same = ("ServiceCode", "ServiceName", "QuotaCode", "QuotaName", "QuotaArn", "GlobalQuota", "Unit")
    request = {
        "Id": mock_random.get_random_hex(32),
        "DesiredValue": desired,
        "Status": "PENDING",
        "Created": now,
        "LastUpdated": now,
        "Requester": json.dumps({"accountId": response.current_account}),
        **{key: quota[key] for key in same},
    }
    _requests(response).append(request)
    return json.dumps({"RequestedQuota": request})


def list_requested_service_quota_change_history_by_quota(response: Any) -> str:
    status = response._get_param("Status")
    requests = [request for request in _requests(response) if status in (None, request["Status"])]
    return _quota_page(response, "RequestedQuotas", requests)


def _quotas(response: Any, *, applied: bool) -> list[Quota]:
    """Return the quotas of the service with the account's value, or with the default."""
    service = response._get_param("ServiceCode")
    if service == "ec2":
        of_instances = [
            _shown(response, service, quota.code, quota.name, quota.applied if applied else quota.default)
            | {"UsageMetric": usage_metric(quota)}
            for quota in vcpu_quotas()
        ]
        return of_instances + _limits(response, service)
    if service == "ebs":
        return _limits(response, service)
    if service == "sagemaker":
        return [
            _shown(response, service, quota.code, quota.name, quota.default)
            for quota in sagemaker_quotas()
            if quota.is_applied or not applied
        ]
    return response.backend.list_aws_default_service_quotas(service)


def _limits(response: Any, service: str) -> list[Quota]:
    """Return the quotas under `limits` in facts.toml, with AWS's defaults. moto provides the quotas of Amazon VPC."""
    limits = [limit for limit in facts()["limits"].values() if isinstance(limit, dict) and limit["service"] == service]
    return [_shown(response, service, limit["code"], limit["name"], float(limit["default"])) for limit in limits]


def _requested_quota(response: Any, *, applied: bool) -> Quota:
    code = response._get_param("QuotaCode")
    for quota in _quotas(response, applied=applied):
        if quota["QuotaCode"] == code:
            return quota
    raise NoSuchResource


def _requests(response: Any) -> list[Quota]:
    quota = response._get_param("ServiceCode"), response._get_param("QuotaCode")
    return vars(response.backend).setdefault("quota_requests", {}).setdefault(quota, [])


def _quota_page(response: Any, name: str, entries: list[Quota]) -> str:
    start, size = int(response._get_param("NextToken") or 0), int(response._get_param("MaxResults") or 100)
    page: dict[str, Any] = {name: entries[start : start + size]}
    if start + size < len(entries):
        page["NextToken"] = str(start + size)
    return json.dumps(page)


def _shown(response: Any, service: str, code: str, name: str, value: float) -> Quota:
    return {
        "ServiceCode": service,
        "ServiceName": _NAMES[service],
        "QuotaArn": f"arn:aws:servicequotas:{response.region}:{response.current_account}:{service}/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
