"""EventBridge: rules on the default bus or another, with their targets."""

from __future__ import annotations

from typing import Any

from trainium_local.resources.api_resource import ApiResource, Tagging
from trainium_local.resources.registry import Provisioned, Request, ResourceType
from trainium_local.resources.settings import Members


class _Rule(ApiResource):
    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        # Members are put to a `Rule`, the rule itself goes by its `Name`.
        bus = request.properties.get("EventBusName", "default")
        return {"Name": current.physical_id, "Rule": current.physical_id, "EventBusName": bus}


TYPES: dict[str, ResourceType] = {
    "AWS::Events::Rule": _Rule(
        service="events",
        create_call="PutRule",
        update_call="PutRule",
        name_property="Name",
        name_limit=64,
        physical_id="{name}",
        attributes={"Arn": "{answer[RuleArn]}"},
        empty_before_delete=(
            Members(
                property_name="Targets",
                add="PutTargets",
                remove="RemoveTargets",
                arguments=lambda target: {"Targets": [target], "Ids": [target["Id"]]},
            ),
        ),
        delete_call="DeleteRule",
        tagging=Tagging(identified_by={"ResourceARN": "{attributes[Arn]}"}),
    ),
}
