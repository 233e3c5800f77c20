"""How many vCPUs of a quota are used, as AWS counts it: in metrics of AWS/Usage, which CloudWatch in moto lacks.

Here they show what runs at this moment; on AWS they are taken every few minutes, and lag behind.
"""

from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends

from trainium_local.seeds.vcpu_quotas import VcpuQuota, vcpu_quotas
from trainium_local.services.vcpu_use import vcpus_used

NAMESPACE = "AWS/Usage"


def usage_metric(quota: VcpuQuota) -> dict[str, Any]:
    """The metric of a quota, as Service Quotas names it.

    Its form and the classes Inf/OnDemand and Standard/Spot are in a public dump of Service Quotas; other classes are
    made by the same pattern, and may be others on AWS.
    """
    family = quota.families[0].capitalize() if len(quota.families) == 1 else "Standard"
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
