"""Launch templates and placement groups."""

from __future__ import annotations

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.ec2 import ec2_resource
from trainium_local.resources.registry import NeedsReplacementError, Properties, Provisioned, Request, ResourceType


class _LaunchTemplate(ApiResource):
    """An update adds a version, as on AWS; the default version stays the first one."""

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        if request.properties.get("TagSpecifications") != previous.get("TagSpecifications"):
            raise NeedsReplacementError
        version = {key: request.properties[key] for key in _VERSION_PROPERTIES if key in request.properties}
        answer = api.call(
            "ec2", "CreateLaunchTemplateVersion", request.region, {"LaunchTemplateId": current.physical_id, **version}
        )
        number = str(answer["LaunchTemplateVersion"]["VersionNumber"])
        return Provisioned(
            physical_id=current.physical_id, attributes={**current.attributes, "LatestVersionNumber": number}
        )


_VERSION_PROPERTIES = ("LaunchTemplateData", "VersionDescription")


TYPES: dict[str, ResourceType] = {
    "AWS::EC2::LaunchTemplate": _LaunchTemplate(
        service="ec2",
        create_call="CreateLaunchTemplate",
        name_property="LaunchTemplateName",
        physical_id="{answer[LaunchTemplate][LaunchTemplateId]}",
        attributes={
            "LaunchTemplateId": "{id}",
            "DefaultVersionNumber": "{answer[LaunchTemplate][DefaultVersionNumber]}",
            "LatestVersionNumber": "{answer[LaunchTemplate][LatestVersionNumber]}",
        },
        delete_call="DeleteLaunchTemplate",
        identified_by={"LaunchTemplateId": "{id}"},
    ),
    "AWS::EC2::PlacementGroup": ec2_resource(
        "PlacementGroup",
        "placement-group",
        name_property="GroupName",
        name_limit=255,
        physical_id="{name}",
        attributes={"GroupName": "{id}", "GroupId": "{answer[PlacementGroup][GroupId]}"},
        identified_by={"GroupName": "{id}"},
    ),
}
