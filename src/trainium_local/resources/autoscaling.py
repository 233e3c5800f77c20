"""Auto Scaling groups: their sizes, and rolling updates by UpdatePolicy."""

import dataclasses
from typing import Any

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import NeedsReplacementError, Properties, Provisioned, Request

_SIZES = ("MinSize", "MaxSize", "DesiredCapacity")
_WHAT_IS_LAUNCHED = ("LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy", "VPCZoneIdentifier")


class _Group(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        subnets = properties.get("VPCZoneIdentifier")
        return {
            **properties,
            "VPCZoneIdentifier": ",".join(subnets) if isinstance(subnets, list) else subnets,
            "Tags": [{"PropagateAtLaunch": True, **tag} for tag in properties.get("Tags") or []],
        }

    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        super().after_create(request, created, answer)
        self._enable_metrics(request, created)

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        new, policy = request.properties, request.update_policy
        relaunch = any(new.get(key) != previous.get(key) for key in _WHAT_IS_LAUNCHED)
        if relaunch and _is_true(policy.get("AutoScalingReplacingUpdate", {}).get("WillReplace")):
            raise NeedsReplacementError
        if _is_true(policy.get("AutoScalingScheduledAction", {}).get("IgnoreUnmodifiedGroupSizeProperties")):
            modified = {key: value for key, value in new.items() if key not in _SIZES or value != previous.get(key)}
            request = dataclasses.replace(request, properties=modified)
            previous = {key: value for key, value in previous.items() if key in modified or key not in new}
        updated = super().update(request, current, previous)
        self._enable_metrics(request, current)
        if relaunch and "AutoScalingRollingUpdate" in policy:
            self._replace_instances(request, current.physical_id, policy["AutoScalingRollingUpdate"])
        return updated

    def _enable_metrics(self, request: Request, current: Provisioned) -> None:
        for metrics in request.properties.get("MetricsCollection") or []:
            self.call(request, "EnableMetricsCollection", {**metrics, "AutoScalingGroupName": current.physical_id})

    def _replace_instances(self, request: Request, name: str, policy: Properties) -> None:
        """Replace instances in batches. Each is terminated first, except those that must remain in service."""
        (group,) = self.call(request, "DescribeAutoScalingGroups", {"AutoScalingGroupNames": [name]})[
            "AutoScalingGroups"
        ]
        instances, desired = [one["InstanceId"] for one in group["Instances"]], group["DesiredCapacity"]
        first_gone = max(0, desired - int(policy.get("MinInstancesInService", 0)))
        batch = int(policy.get("MaxBatchSize", 1))
        for start in range(0, len(instances), batch):
            for place, instance_id in enumerate(instances[start : start + batch]):
                ended = {"InstanceId": instance_id, "ShouldDecrementDesiredCapacity": place < first_gone}
                self.call(request, "TerminateInstanceInAutoScalingGroup", ended)
            wanted = {"AutoScalingGroupName": name, "DesiredCapacity": desired}
            self.call(request, "SetDesiredCapacity", wanted)


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


KINDS = {"AWS::AutoScaling::AutoScalingGroup": _Group}
