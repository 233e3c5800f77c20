"""Service Quotas for EC2, which moto lacks, and the refusal of a launch that goes over a quota of vCPUs."""

import json
from collections.abc import Iterator
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend

from trainium_local.seeds.vcpu_quotas import VcpuQuota, quota_for, vcpu_quotas
from trainium_local.services.errors import Refused
from trainium_local.services.launch_request import ON_DEMAND

SERVICE = "ec2"
COUNTED_STATES = ("pending", "running", "stopping", "shutting-down")
# Which quota a Capacity Block counts against, if any, is not documented: it is not held against one here.
LIMITED_MARKETS = (ON_DEMAND, "spot")

_moto_default_quotas = ServiceQuotasBackend.list_aws_default_service_quotas


def refuse_over_quota(backend: Any, *, instance_type: str, market: str, count: int) -> None:
    """Raise AWS's error when `count` more instances would go over the quota of their family and market."""
    quota = quota_for(instance_type, market) if market in LIMITED_MARKETS else None
    if quota is None:
        return
    used = sum(_vcpus(instance.instance_type) for instance in _counted(backend, quota))
    if used + count * _vcpus(instance_type) <= quota.applied:
        return
    if market == "spot":
        raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    raise Refused(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {quota.applied:.0f} allows for the "
        "instance bucket that the specified instance type belongs to. Please visit "
        "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
    )


def get_service_quota(response: Any) -> str:
    return json.dumps({"Quota": _find(response, _listed(response, applied=True))})


def get_aws_default_service_quota(response: Any) -> str:
    return json.dumps({"Quota": _find(response, _listed(response, applied=False))})


def list_service_quotas(response: Any) -> str:
    return _page(response, _listed(response, applied=True))


def list_aws_default_service_quotas(response: Any) -> str:
    return _page(response, _listed(response, applied=False))


def _counted(backend: Any, quota: VcpuQuota) -> Iterator[Any]:
    for instance in backend.all_instances():
        market = instance.lifecycle or ON_DEMAND
        if instance.state in COUNTED_STATES and quota_for(instance.instance_type, market) == quota:
            yield instance


def _vcpus(instance_type: str) -> int:
    return INSTANCE_TYPES[instance_type]["VCpuInfo"]["DefaultVCpus"]


def _listed(response: Any, *, applied: bool) -> list[dict[str, Any]]:
    service = str(json.loads(response.body).get("ServiceCode"))
    if service != SERVICE:
        return _moto_default_quotas(response.backend, service)
    return [
        {
            "ServiceCode": SERVICE,
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaArn": f"arn:aws:servicequotas:{response.region}:{response.current_account}:{SERVICE}/{quota.code}",
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "Value": quota.applied if applied else quota.default,
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }
        for quota in vcpu_quotas()
    ]


def _find(response: Any, quotas: list[dict[str, Any]]) -> dict[str, Any]:
    code = json.loads(response.body).get("QuotaCode")
    for quota in quotas:
        if quota["QuotaCode"] == code:
            return quota
    raise NoSuchResource


def _page(response: Any, quotas: list[dict[str, Any]]) -> str:
    asked = json.loads(response.body)
    start, size = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or 100)
    page: dict[str, Any] = {"Quotas": quotas[start : start + size]}
    if start + size < len(quotas):
        page["NextToken"] = str(start + size)
    return json.dumps(page)
