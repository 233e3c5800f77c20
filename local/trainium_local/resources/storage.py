"""File systems, container repositories and keys."""

from __future__ import annotations

from typing import Any

from trainium_local.resources.api_resource import ApiResource, Tagging
from trainium_local.resources.registry import Provisioned, Request, ResourceType
from trainium_local.resources.settings import Setting


class _FileSystem(ApiResource):
    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        made = answer["FileSystem"]
        created.attributes["DNSName"] = made["DNSName"]
        if "LustreConfiguration" in made:
            created.attributes["LustreMountName"] = made["LustreConfiguration"]["MountName"]


class _KmsKey(ApiResource):
    """A key is never deleted at once: it waits, as on AWS."""

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        days = request.properties.get("PendingWindowInDays", 30)
        return {"KeyId": current.physical_id, "PendingWindowInDays": days}


TYPES: dict[str, ResourceType] = {
    "AWS::FSx::FileSystem": _FileSystem(
        service="fsx",
        create_call="CreateFileSystem",
        physical_id="{answer[FileSystem][FileSystemId]}",
        attributes={"Id": "{id}", "ResourceARN": "arn:aws:fsx:{region}:{account}:file-system/{id}"},
        update_call="UpdateFileSystem",
        delete_call="DeleteFileSystem",
        identified_by={"FileSystemId": "{id}"},
        tagging=Tagging(identified_by={"ResourceARN": "{attributes[ResourceARN]}"}),
    ),
    "AWS::EFS::FileSystem": ApiResource(
        service="efs",
        create_call="CreateFileSystem",
        arguments={"CreationToken": "{name}"},
        name_limit=64,
        renamed={"FileSystemTags": "Tags"},
        physical_id="{answer[FileSystemId]}",
        attributes={"FileSystemId": "{id}", "Arn": "{answer[FileSystemArn]}"},
        settings=(
            Setting(
                property_name="LifecyclePolicies", operation="PutLifecycleConfiguration", argument="LifecyclePolicies"
            ),
            Setting(
                property_name="FileSystemPolicy",
                operation="PutFileSystemPolicy",
                argument="Policy",
                reset="DeleteFileSystemPolicy",
            ),
            Setting(property_name="BackupPolicy", operation="PutBackupPolicy", argument="BackupPolicy"),
        ),
        update_call="UpdateFileSystem",
        delete_call="DeleteFileSystem",
        identified_by={"FileSystemId": "{id}"},
        tagging=Tagging(identified_by={"ResourceId": "{id}"}),
    ),
    "AWS::EFS::MountTarget": ApiResource(
        service="efs",
        create_call="CreateMountTarget",
        physical_id="{answer[MountTargetId]}",
        attributes={"Id": "{id}", "IpAddress": "{answer[IpAddress]}"},
        settings=(
            Setting(
                property_name="SecurityGroups",
                operation="ModifyMountTargetSecurityGroups",
                argument="SecurityGroups",
                part_of_creation=True,
            ),
        ),
        delete_call="DeleteMountTarget",
        identified_by={"MountTargetId": "{id}"},
    ),
    "AWS::ECR::Repository": ApiResource(
        service="ecr",
        create_call="CreateRepository",
        name_property="RepositoryName",
        lowercase_name=True,
        physical_id="{name}",
        attributes={
            "Arn": "{answer[repository][repositoryArn]}",
            "RepositoryUri": "{answer[repository][repositoryUri]}",
        },
        settings=(
            Setting(
                property_name="LifecyclePolicy",
                operation="PutLifecyclePolicy",
                argument="lifecyclePolicyText",
                value=lambda policy: policy["LifecyclePolicyText"],
                reset="DeleteLifecyclePolicy",
            ),
            Setting(
                property_name="RepositoryPolicyText",
                operation="SetRepositoryPolicy",
                argument="policyText",
                reset="DeleteRepositoryPolicy",
            ),
            Setting(
                property_name="ImageScanningConfiguration",
                operation="PutImageScanningConfiguration",
                argument="imageScanningConfiguration",
                part_of_creation=True,
            ),
            Setting(
                property_name="ImageTagMutability",
                operation="PutImageTagMutability",
                argument="imageTagMutability",
                part_of_creation=True,
            ),
        ),
        delete_call="DeleteRepository",
        identified_by={"repositoryName": "{id}"},
        tagging=Tagging(identified_by={"resourceArn": "{attributes[Arn]}"}),
    ),
    "AWS::KMS::Key": _KmsKey(
        service="kms",
        create_call="CreateKey",
        renamed={"KeyPolicy": "Policy"},
        physical_id="{answer[KeyMetadata][KeyId]}",
        attributes={"Arn": "{answer[KeyMetadata][Arn]}", "KeyId": "{id}"},
        settings=(
            Setting(
                property_name="Description",
                operation="UpdateKeyDescription",
                argument="Description",
                part_of_creation=True,
            ),
            Setting(property_name="KeyPolicy", operation="PutKeyPolicy", argument="Policy", part_of_creation=True),
        ),
        adapted=frozenset({"PendingWindowInDays"}),
        delete_call="ScheduleKeyDeletion",
        tagging=Tagging(identified_by={"KeyId": "{id}"}),
    ),
    "AWS::KMS::Alias": ApiResource(
        service="kms",
        create_call="CreateAlias",
        update_call="UpdateAlias",
        physical_id="{properties[AliasName]}",
        delete_call="DeleteAlias",
        identified_by={"AliasName": "{id}"},
    ),
    "AWS::SageMaker::Cluster": ApiResource(
        service="sagemaker",
        create_call="CreateCluster",
        name_property="ClusterName",
        name_limit=63,
        physical_id="{answer[ClusterArn]}",
        attributes={"ClusterArn": "{id}", "ClusterStatus": "InService"},
        delete_call="DeleteCluster",
        identified_by={"ClusterName": "{id}"},
        tagging=Tagging(identified_by={"ResourceArn": "{id}"}, tag="AddTags", untag="DeleteTags"),
    ),
}
