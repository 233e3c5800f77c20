"""Service Quotas for EC2 and SageMaker, which moto lacks."""

import json
from typing import Any

from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend

from trainium_local.seeds.sagemaker_quotas import sagemaker_quotas
from trainium_local.seeds.vcpu_quotas import vcpu_quotas
from trainium_local.services.usage_metrics import usage_metric

_moto_default_quotas = ServiceQuotasBackend.list_aws_default_service_quotas

_NAMES = {"ec2": "Amazon Elastic Compute Cloud (Amazon EC2)", "sagemaker": "Amazon SageMaker"}


def get_service_quota(response: Any) -> str:
    return json.dumps({"Quota": _asked_for(response, applied=True)})


def get_aws_default_service_quota(response: Any) -> str:
    return json.dumps({"Quota": _asked_for(response, applied=False)})


def list_service_quotas(response: Any) -> str:
    return page_of(response, "Quotas", quotas(response, parameters(response)["ServiceCode"], applied=True))


def list_aws_default_service_quotas(response: Any) -> str:
    return page_of(response, "Quotas", quotas(response, parameters(response)["ServiceCode"], applied=False))


def quotas(response: Any, service: str, *, applied: bool) -> list[dict[str, Any]]:
    """Every quota of a service as the account has it, or as AWS gives it to a new account."""
    if service == "ec2":
        return [
            _shown(response, service, quota.code, quota.name, quota.applied if applied else quota.default)
            | {"UsageMetric": usage_metric(quota)}
            for quota in vcpu_quotas()
        ]
    if service == "sagemaker":
        return [
            _shown(response, service, quota.code, quota.name, quota.default)
            for quota in sagemaker_quotas()
            if quota.is_applied or not applied
        ]
    return _moto_default_quotas(response.backend, service)


def quota_of(quotas: list[dict[str, Any]], code: str) -> dict[str, Any]:
    """Raises AWS's NoSuchResourceException."""
    for quota in quotas:
        if quota["QuotaCode"] == code:
            return quota
    raise NoSuchResource


def parameters(response: Any) -> dict[str, Any]:
    """The parameters of a request."""
    return json.loads(response.body)


def page_of(response: Any, name: str, entries: list[dict[str, Any]]) -> str:
    """One page of a list, with the token of the next."""
    asked = parameters(response)
    start, size = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or 100)
    page: dict[str, Any] = {name: entries[start : start + size]}
    if start + size < len(entries):
        page["NextToken"] = str(start + size)
    return json.dumps(page)


def _asked_for(response: Any, *, applied: bool) -> dict[str, Any]:
    asked = parameters(response)
    return quota_of(quotas(response, asked["ServiceCode"], applied=applied), asked["QuotaCode"])


def _shown(response: Any, service: str, code: str, name: str, value: float) -> dict[str, Any]:
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
