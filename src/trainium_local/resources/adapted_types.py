"""Types of several services that need little code in addition to their row in types.toml."""

import io
import zipfile
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import NeedsReplacementError, Properties, Provisioned, ResourceRequest


class _Function(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        """Turn the source text of a Python function into the archive that the API expects."""
        source = properties["Code"].get("ZipFile")
        if source is None:
            return properties
        entry = zipfile.ZipInfo("index.py")
        entry.external_attr = 0o644 << 16
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as bundle:
            bundle.writestr(entry, source)
        return {**properties, "Code": {"ZipFile": archive.getvalue()}}


class _Key(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        """Turn the properties about rotation into the arguments of EnableKeyRotation, if keys rotate."""
        rotates = str(properties.get("EnableKeyRotation")).lower() == "true"
        period = {"RotationPeriodInDays": properties.get("RotationPeriodInDays")}
        return {**properties, "EnableKeyRotation": period if rotates else None}


class _ManagedPolicy(ApiResource):
    def call(self, request: ResourceRequest, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Delete all versions except the default first, if necessary: IAM allows five versions, and deletes a policy
        only without others."""
        if operation in ("CreatePolicyVersion", "DeletePolicy"):
            policy = {"PolicyArn": arguments["PolicyArn"]}
            for version in super().call(request, "ListPolicyVersions", policy)["Versions"]:
                if not version["IsDefaultVersion"]:
                    super().call(request, "DeletePolicyVersion", policy | {"VersionId": version["VersionId"]})
        return super().call(request, operation, arguments)


class _FileSystem(ApiResource):
    """An FSx file system. A change of LustreConfiguration that UpdateFileSystem refuses requires replacement."""

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        accepted = api.argument_names(self.service, self.update_call, "LustreConfiguration")
        new, old = (properties.get("LustreConfiguration") or {} for properties in (request.properties, previous))
        if {name for name in new.keys() | old.keys() if new.get(name) != old.get(name)} - accepted:
            raise NeedsReplacementError
        return super().update(request, current, previous)


class _NodeGroup(ApiResource):
    """A compute node group of AWS PCS. The API has other names for the ID and the version of a launch template."""

    def adapt(self, properties: Properties) -> Properties:
        template = properties.get("CustomLaunchTemplate")
        if template is None:
            return properties
        return {**properties, "CustomLaunchTemplate": {"id": template["TemplateId"], "version": template["Version"]}}


class _Disabled(ApiResource):
    """A type of AWS Batch whose resources must be disabled before they are deleted."""

    def call(self, request: ResourceRequest, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if operation == self.delete_call:
            super().call(request, self.update_call, arguments | {"state": "DISABLED"})
        return super().call(request, operation, arguments)


KINDS: dict[str, type[ApiResource]] = {
    "AWS::Batch::JobQueue": _Disabled,
    "AWS::Batch::ServiceEnvironment": _Disabled,
    "AWS::FSx::FileSystem": _FileSystem,
    "AWS::IAM::ManagedPolicy": _ManagedPolicy,
    "AWS::KMS::Key": _Key,
    "AWS::Lambda::Function": _Function,
    "AWS::PCS::ComputeNodeGroup": _NodeGroup,
}
