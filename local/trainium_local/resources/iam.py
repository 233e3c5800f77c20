"""IAM roles, instance profiles and policies, with what is attached to them."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource, Tagging
from trainium_local.resources.registry import (
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)
from trainium_local.resources.settings import Members, Setting

_INLINE_POLICIES = Members(
    property_name="Policies", add="PutRolePolicy", remove="DeleteRolePolicy", arguments=lambda policy: policy
)
_MANAGED_POLICIES = Members(
    property_name="ManagedPolicyArns",
    add="AttachRolePolicy",
    remove="DetachRolePolicy",
    arguments=lambda arn: {"PolicyArn": arn},
)
_PROFILE_ROLES = Members(
    property_name="Roles",
    add="AddRoleToInstanceProfile",
    remove="RemoveRoleFromInstanceProfile",
    arguments=lambda role: {"RoleName": role},
)


def _owners(add: str, remove: str) -> tuple[Members, ...]:
    """Whom a policy is attached to; `add` and `remove` name the calls, with Owner for the kind of owner."""
    return tuple(
        Members(
            property_name=f"{owner}s",
            add=add.replace("Owner", owner),
            remove=remove.replace("Owner", owner),
            arguments=lambda name, key=f"{owner}Name": {key: name},
        )
        for owner in ("Role", "User", "Group")
    )


class _InlinePolicy(ApiResource):
    """It exists only in its owners: no call creates or deletes the policy itself."""

    def create(self, request: Request) -> Provisioned:
        created = Provisioned(physical_id=request.properties["PolicyName"], attributes={"Id": request.logical_id})
        try:
            self._apply_settings(request, created, None)
        except Exception as error:
            raise ProvisioningError(api.words(error), leftover=created) from error
        return created

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        if request.properties["PolicyName"] != previous["PolicyName"]:
            raise NeedsReplacementError
        if request.properties["PolicyDocument"] == previous["PolicyDocument"]:
            self._apply_settings(request, current, previous)
        else:
            self.delete(dataclasses.replace(request, properties=previous), current)
            self._apply_settings(request, current, None)
        return current

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        return {"PolicyName": current.physical_id, "PolicyDocument": request.properties["PolicyDocument"]}


class _ManagedPolicy(ApiResource):
    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        document = request.properties["PolicyDocument"]
        if document != previous["PolicyDocument"]:
            self._make_room(request, current.physical_id)
            arguments = {"PolicyArn": current.physical_id, "PolicyDocument": document, "SetAsDefault": True}
            api.call("iam", "CreatePolicyVersion", request.region, arguments)
        return super().update(request, current, {**previous, "PolicyDocument": document})

    def delete(self, request: Request, current: Provisioned) -> None:
        for version in self._versions(request, current.physical_id):
            self._delete_version(request, current.physical_id, version)
        super().delete(request, current)

    def _make_room(self, request: Request, arn: str) -> None:
        """IAM keeps five versions and refuses a sixth."""
        versions = self._versions(request, arn)
        if len(versions) >= 4:
            self._delete_version(request, arn, versions[-1])

    def _versions(self, request: Request, arn: str) -> list[str]:
        versions = api.call("iam", "ListPolicyVersions", request.region, {"PolicyArn": arn})["Versions"]
        return [version["VersionId"] for version in versions if not version["IsDefaultVersion"]]

    def _delete_version(self, request: Request, arn: str, version: str) -> None:
        api.call("iam", "DeletePolicyVersion", request.region, {"PolicyArn": arn, "VersionId": version})


TYPES: dict[str, ResourceType] = {
    "AWS::IAM::Role": ApiResource(
        service="iam",
        create_call="CreateRole",
        name_property="RoleName",
        name_limit=64,
        physical_id="{name}",
        attributes={"Arn": "{answer[Role][Arn]}", "RoleId": "{answer[Role][RoleId]}"},
        update_call="UpdateRole",
        settings=(
            Setting(
                property_name="AssumeRolePolicyDocument",
                operation="UpdateAssumeRolePolicy",
                argument="PolicyDocument",
                part_of_creation=True,
            ),
            Setting(
                property_name="PermissionsBoundary",
                operation="PutRolePermissionsBoundary",
                argument="PermissionsBoundary",
                reset="DeleteRolePermissionsBoundary",
                part_of_creation=True,
            ),
        ),
        empty_before_delete=(_INLINE_POLICIES, _MANAGED_POLICIES),
        delete_call="DeleteRole",
        identified_by={"RoleName": "{id}"},
        tagging=Tagging(identified_by={"RoleName": "{id}"}, tag="TagRole", untag="UntagRole"),
    ),
    "AWS::IAM::InstanceProfile": ApiResource(
        service="iam",
        create_call="CreateInstanceProfile",
        name_property="InstanceProfileName",
        physical_id="{name}",
        attributes={"Arn": "{answer[InstanceProfile][Arn]}"},
        empty_before_delete=(_PROFILE_ROLES,),
        delete_call="DeleteInstanceProfile",
        identified_by={"InstanceProfileName": "{id}"},
    ),
    "AWS::IAM::Policy": _InlinePolicy(
        service="iam",
        create_call="",
        physical_id="",
        empty_before_delete=_owners("PutOwnerPolicy", "DeleteOwnerPolicy"),
    ),
    "AWS::IAM::ManagedPolicy": _ManagedPolicy(
        service="iam",
        create_call="CreatePolicy",
        arguments={"PolicyName": "{name}"},
        name_property="ManagedPolicyName",
        physical_id="{answer[Policy][Arn]}",
        attributes={"PolicyArn": "{id}", "PolicyId": "{answer[Policy][PolicyId]}"},
        empty_before_delete=_owners("AttachOwnerPolicy", "DetachOwnerPolicy"),
        delete_call="DeletePolicy",
        identified_by={"PolicyArn": "{id}"},
    ),
}
