"""Types of several services that need little code in addition to their row in types.toml."""

import io
import json
import zipfile
from importlib.resources import files
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import NeedsReplacementError, Properties, Provisioned, Request

_RESPONSE_MODULE = files("trainium_local.resources") / "cfn_response" / "cfnresponse.py"


class _Function(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        """Turn source text into the archive that the API expects, with the response module for custom resources."""
        source = properties["Code"].get("ZipFile")
        if source is None:
            return properties
        python = str(properties.get("Runtime", "")).startswith("python")
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as bundle:
            entries = (
                {"index.py": source, "cfnresponse.py": _RESPONSE_MODULE.read_text()} if python else {"index.js": source}
            )
            for path, text in entries.items():
                entry = zipfile.ZipInfo(path)
                entry.external_attr = 0o644 << 16
                bundle.writestr(entry, text)
        return {**properties, "Code": {"ZipFile": archive.getvalue()}}


class _ManagedPolicy(ApiResource):
    def call(self, request: Request, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Delete the oldest version first: IAM keeps five versions and refuses a sixth."""
        if operation == "CreatePolicyVersion":
            self._delete_versions(request, arguments["PolicyArn"], keep=3)
        return super().call(request, operation, arguments)

    def delete(self, request: Request, current: Provisioned) -> None:
        self._delete_versions(request, current.physical_id, keep=0)
        super().delete(request, current)

    def _delete_versions(self, request: Request, arn: str, keep: int) -> None:
        """Delete versions other than the default, oldest first."""
        versions = self.call(request, "ListPolicyVersions", {"PolicyArn": arn})["Versions"]
        old = sorted((one for one in versions if not one["IsDefaultVersion"]), key=lambda one: one["CreateDate"])
        for version in old[: max(0, len(old) - keep)]:
            self.call(request, "DeletePolicyVersion", {"PolicyArn": arn, "VersionId": version["VersionId"]})


class _StateMachine(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        given = properties.get("DefinitionString") or properties.get("Definition")
        definition = given if isinstance(given, str) else json.dumps(given)
        for name, value in (properties.get("DefinitionSubstitutions") or {}).items():
            definition = definition.replace(f"${{{name}}}", str(value))
        return {**properties, "definition": definition}


class _FileSystem(ApiResource):
    """An FSx file system. A change that UpdateFileSystem does not support requires replacement."""

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        accepted = api.argument_names(self.service, self.update_call, request.region, "LustreConfiguration")
        new, old = (given.get("LustreConfiguration") or {} for given in (request.properties, previous))
        if {name for name in new.keys() | old.keys() if new.get(name) != old.get(name)} - accepted:
            raise NeedsReplacementError
        return super().update(request, current, previous)


class _NodeGroup(ApiResource):
    """A compute node group of AWS PCS, whose API calls the ID of a launch template `id`."""

    def adapt(self, properties: Properties) -> Properties:
        template = properties.get("CustomLaunchTemplate")
        if template is None:
            return properties
        return {**properties, "CustomLaunchTemplate": {"id": template["TemplateId"], "version": template["Version"]}}


KINDS: dict[str, type[ApiResource]] = {
    "AWS::FSx::FileSystem": _FileSystem,
    "AWS::IAM::ManagedPolicy": _ManagedPolicy,
    "AWS::Lambda::Function": _Function,
    "AWS::PCS::ComputeNodeGroup": _NodeGroup,
    "AWS::StepFunctions::StateMachine": _StateMachine,
}
