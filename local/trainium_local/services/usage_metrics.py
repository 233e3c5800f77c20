"""AWS's own count of what is used of a quota: the metrics of the namespace AWS/Usage, which moto's CloudWatch lacks.

Here they tell what runs at this moment. On AWS they are taken every few minutes, and lag behind.
"""

from datetime import UTC, datetime
from typing import Any

from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends

from trainium_local.seeds.vcpu_quotas import VcpuQuota, vcpu_quotas
from trainium_local.services.vcpu_use import vcpus_used

NAMESPACE, NAME = "AWS/Usage", "ResourceCount"

_moto_get_metric_statistics = CloudWatchResponse.get_metric_statistics


def usage_metric(quota: VcpuQuota) -> dict[str, Any]:
    """The metric of a quota, as Service Quotas names it.

    Its form and the classes Inf/OnDemand and Standard/Spot are in a public dump of Service Quotas; the classes of Trn
    are made by the same pattern, and may be others on AWS.
    """
    return {
        "MetricNamespace": NAMESPACE,
        "MetricName": NAME,
        "MetricDimensions": {"Class": _class(quota), "Resource": "vCPU", "Service": "EC2", "Type": "Resource"},
        "MetricStatisticRecommendation": "Maximum",
    }


def get_metric_statistics(response: Any) -> ActionResult:
    if response._get_param("Namespace") != NAMESPACE:
        return _moto_get_metric_statistics(response)
    asked = {dimension["Name"]: dimension["Value"] for dimension in response._get_param("Dimensions", [])}
    statistics = response._get_param("Statistics", [])
    backend = ec2_backends[response.current_account][response.region]
    points = [
        {"Timestamp": datetime.now(UTC), "Unit": "None", **dict.fromkeys(statistics, float(vcpus_used(backend, quota)))}
        for quota in vcpu_quotas()
        if usage_metric(quota)["MetricDimensions"] == asked
    ]
    return ActionResult({"Label": response._get_param("MetricName"), "Datapoints": points})


def _class(quota: VcpuQuota) -> str:
    family = quota.families[0].capitalize() if len(quota.families) == 1 else "Standard"
    return f"{family}/{'Spot' if quota.market == 'spot' else 'OnDemand'}"
