"""vCPUs in use by quota: refuses launches over the quota, and provides the usage metrics.

moto lacks the metrics in AWS/Usage. Here they show the current use; on AWS they lag behind.
"""

from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES

from trainium_local.seeds.vcpu_quotas import VcpuQuota, quota_for, vcpu_quotas
from trainium_local.services.errors import refusal
from trainium_local.services.launch_request import ON_DEMAND

NAMESPACE = "AWS/Usage"
# EC2 User Guide, Reserved Instance quotas: running instances count, stopping and stopped ones do not.
# Pending instances count here, although they do not in that source, because they start within seconds.
COUNTED_STATES = ("pending", "running")
# AWS does not document whether a Capacity Block counts against a quota. Here it does not.
LIMITED_MARKETS = (ON_DEMAND, "spot")


def refuse_over_quota(backend: Any, *, instance_type: str, market: str, count: int) -> None:
    """Raise AWS's error if `count` more instances would exceed the quota of their family and market."""
    quota = quota_for(instance_type, market) if market in LIMITED_MARKETS else None
    if quota is None or vcpus_used(backend, quota) + count * _vcpus(instance_type) <= quota.applied:
        return
    raise refusal("spot-limit") if market == "spot" else refusal("vcpu-limit", limit=quota.applied)


def vcpus_used(backend: Any, quota: VcpuQuota) -> int:
    """Return the vCPUs in use that count against a quota, from the EC2 backend of a region."""
    return sum(
        _vcpus(instance.instance_type)
        for instance in backend.all_instances()
        if instance.state in COUNTED_STATES
        and quota_for(instance.instance_type, instance.lifecycle or ON_DEMAND) == quota
    )


def _vcpus(instance_type: str) -> int:
    return INSTANCE_TYPES[instance_type]["VCpuInfo"]["DefaultVCpus"]


def usage_metric(quota: VcpuQuota) -> dict[str, Any]:
    """Return the metric of a quota, as Service Quotas names it.

    A public dump of Service Quotas confirms the form and the classes Inf/OnDemand and Standard/Spot. Other classes
    follow the same pattern, and may differ on AWS.
    """
    family = "Standard" if "m" in quota.families else quota.families[0].capitalize()
    market = "Spot" if quota.market == "spot" else "OnDemand"
    return {
        "MetricNamespace": NAMESPACE,
        "MetricName": "ResourceCount",
        "MetricDimensions": {"Class": f"{family}/{market}", "Resource": "vCPU", "Service": "EC2", "Type": "Resource"},
        "MetricStatisticRecommendation": "Maximum",
    }


def get_metric_statistics(original: Any, response: Any) -> ActionResult:
    if response._get_param("Namespace") != NAMESPACE:
        return original(response)
    dimensions = {dimension["Name"]: dimension["Value"] for dimension in response._get_param("Dimensions", [])}
    backend = ec2_backends[response.current_account][response.region]
    points: list[dict[str, Any]] = []
    for quota in vcpu_quotas():
        if usage_metric(quota)["MetricDimensions"] == dimensions:
            statistics = dict.fromkeys(response._get_param("Statistics", []), float(vcpus_used(backend, quota)))
            points.append({"Timestamp": datetime.now(UTC), "Unit": "None", **statistics})
    return ActionResult({"Label": response._get_param("MetricName"), "Datapoints": points})
