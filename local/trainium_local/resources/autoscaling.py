"""Auto Scaling groups: sizes, tags, hooks, and the replacement of instances that an UpdatePolicy asks for."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import NeedsReplacementError, Properties, Provisioned, Request, ResourceType
from trainium_local.resources.settings import Members

_SIZES = ("MinSize", "MaxSize", "DesiredCapacity")
_WHAT_IS_LAUNCHED = ("LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy", "VPCZoneIdentifier")
_ATTACHED = (
    Members(
        property_name="TargetGroupARNs",
        add="AttachLoadBalancerTargetGroups",
        remove="DetachLoadBalancerTargetGroups",
        arguments=lambda arn: {"TargetGroupARNs": [arn]},
    ),
    Members(
        property_name="LoadBalancerNames",
        add="AttachLoadBalancers",
        remove="DetachLoadBalancers",
        arguments=lambda name: {"LoadBalancerNames": [name]},
    ),
    Members(
        property_name="LifecycleHookSpecificationList",
        add="PutLifecycleHook",
        remove="DeleteLifecycleHook",
        arguments=lambda hook: hook,
    ),
)
_OWN_CALLS = ("Tags", "NotificationConfigurations", "MetricsCollection", *(own.property_name for own in _ATTACHED))


class _Group(ApiResource):
    def create(self, request: Request) -> Provisioned:
        name = request.properties.get("AutoScalingGroupName") or request.generated_name(self.name_limit)
        named = {**request.properties, "AutoScalingGroupName": name}
        return super().create(dataclasses.replace(request, properties=named))  # each tag repeats the group's name

    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        group = self._call(request, "DescribeAutoScalingGroups", AutoScalingGroupNames=[created.physical_id])
        created.attributes["AutoScalingGroupARN"] = group["AutoScalingGroups"][0]["AutoScalingGroupARN"]
        self._notify(request, created.physical_id)
        for hook in request.properties.get("LifecycleHookSpecificationList") or []:  # moto's creation drops them
            self._call(request, "PutLifecycleHook", **hook, AutoScalingGroupName=created.physical_id)

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        new, name = request.properties, current.physical_id
        relaunch = any(new.get(key) != previous.get(key) for key in _WHAT_IS_LAUNCHED)
        if relaunch and _is_true(request.update_policy.get("AutoScalingReplacingUpdate", {}).get("WillReplace")):
            raise NeedsReplacementError
        arguments = {key: value for key, value in _group_arguments(dict(new)).items() if key not in _OWN_CALLS}
        if _is_true(
            request.update_policy.get("AutoScalingScheduledAction", {}).get("IgnoreUnmodifiedGroupSizeProperties")
        ):
            unmodified = {key for key in _SIZES if new.get(key) == previous.get(key)}
            arguments = {key: value for key, value in arguments.items() if key not in unmodified}
        self._call(request, "UpdateAutoScalingGroup", **arguments, AutoScalingGroupName=name)
        self._retag(request, name, previous)
        for attached in _ATTACHED:
            for operation, given in attached.calls(*(one.get(attached.property_name) or [] for one in (previous, new))):
                self._call(request, operation, **given, AutoScalingGroupName=name)
        self._notify(request, name)
        if relaunch and "AutoScalingRollingUpdate" in request.update_policy:
            self._replace_instances(request, name, request.update_policy["AutoScalingRollingUpdate"])
        return current

    def _retag(self, request: Request, name: str, previous: Properties) -> None:
        def tags(properties: Properties) -> dict[str, Any]:
            return {tag["Key"]: tag for tag in _group_arguments({**properties, "AutoScalingGroupName": name})["Tags"]}

        old, new = tags(previous), tags(request.properties)
        gone = [old[key] for key in old.keys() - new.keys()]
        if gone:
            self._call(request, "DeleteTags", Tags=gone)
        if new != old:
            self._call(request, "CreateOrUpdateTags", Tags=list(new.values()))

    def _notify(self, request: Request, name: str) -> None:
        for target in request.properties.get("NotificationConfigurations") or []:
            self._call(request, "PutNotificationConfiguration", AutoScalingGroupName=name, **target)
        for metrics in request.properties.get("MetricsCollection") or []:
            self._call(request, "EnableMetricsCollection", AutoScalingGroupName=name, **metrics)

    def _replace_instances(self, request: Request, name: str, policy: Properties) -> None:
        """Batch by batch; each goes before its replacement comes, but for those that have to stay in service."""
        group = self._call(request, "DescribeAutoScalingGroups", AutoScalingGroupNames=[name])["AutoScalingGroups"][0]
        instances, desired = [one["InstanceId"] for one in group["Instances"]], group["DesiredCapacity"]
        first_gone = max(0, desired - int(policy.get("MinInstancesInService", 0)))
        batch = int(policy.get("MaxBatchSize", 1))
        for start in range(0, len(instances), batch):
            ended = instances[start : start + batch]
            for place, instance_id in enumerate(ended):
                self._call(
                    request,
                    "TerminateInstanceInAutoScalingGroup",
                    InstanceId=instance_id,
                    ShouldDecrementDesiredCapacity=place < first_gone,
                )
            self._call(request, "SetDesiredCapacity", AutoScalingGroupName=name, DesiredCapacity=desired)

    def _call(self, request: Request, operation: str, **arguments: Any) -> dict[str, Any]:
        return api.call(self.service, operation, request.region, arguments)


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _group_arguments(group: Properties) -> Properties:
    subnets = group.get("VPCZoneIdentifier")
    if isinstance(subnets, list):
        group["VPCZoneIdentifier"] = ",".join(subnets)
    group["Tags"] = [
        {
            "PropagateAtLaunch": True,
            "ResourceType": "auto-scaling-group",
            "ResourceId": group.get("AutoScalingGroupName"),
            **tag,
        }
        for tag in group.get("Tags") or []
    ]
    return group


TYPES: dict[str, ResourceType] = {
    "AWS::AutoScaling::AutoScalingGroup": _Group(
        service="autoscaling",
        create_call="CreateAutoScalingGroup",
        adapt=_group_arguments,
        renamed={"Cooldown": "DefaultCooldown"},
        adapted=frozenset({"MetricsCollection", "NotificationConfigurations"}),
        name_property="AutoScalingGroupName",
        name_limit=255,
        physical_id="{name}",
        delete_call="DeleteAutoScalingGroup",
        identified_by={"AutoScalingGroupName": "{id}", "ForceDelete": "true"},
    ),
    "AWS::AutoScaling::LaunchConfiguration": ApiResource(
        service="autoscaling",
        create_call="CreateLaunchConfiguration",
        name_property="LaunchConfigurationName",
        name_limit=255,
        physical_id="{name}",
        delete_call="DeleteLaunchConfiguration",
        identified_by={"LaunchConfigurationName": "{id}"},
    ),
}
