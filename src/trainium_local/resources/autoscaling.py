"""Auto Scaling groups. With IgnoreUnmodifiedGroupSizeProperties, an update keeps sizes that the template keeps."""

import dataclasses

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Properties, Provisioned, ResourceRequest

_SIZES = ("MinSize", "MaxSize", "DesiredCapacity")


class _Group(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        subnets = properties.get("VPCZoneIdentifier")
        return {
            **properties,
            "VPCZoneIdentifier": ",".join(subnets) if isinstance(subnets, list) else subnets,
            "Tags": [{"PropagateAtLaunch": True, **tag} for tag in properties.get("Tags") or []],
        }

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        scheduled = request.update_policy.get("AutoScalingScheduledAction", {})
        if str(scheduled.get("IgnoreUnmodifiedGroupSizeProperties")).lower() == "true":
            new = request.properties
            modified = {key: value for key, value in new.items() if key not in _SIZES or value != previous.get(key)}
            request = dataclasses.replace(request, properties=modified)
            previous = {key: value for key, value in previous.items() if key in modified or key not in new}
        return super().update(request, current, previous)


KINDS = {"AWS::AutoScaling::AutoScalingGroup": _Group}
