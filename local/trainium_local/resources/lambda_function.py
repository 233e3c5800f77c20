"""Lambda functions, their versions and permissions."""

from __future__ import annotations

import io
import zipfile
from importlib.resources import files

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource, Tagging
from trainium_local.resources.registry import Properties, Provisioned, Request, ResourceType
from trainium_local.resources.settings import Setting


class _Function(ApiResource):
    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        if request.properties["Code"] != previous["Code"]:
            arguments = {"FunctionName": current.physical_id, **_packed(request.properties)["Code"]}
            api.call("lambda", "UpdateFunctionCode", request.region, arguments)
        return super().update(request, current, {**previous, "Code": request.properties["Code"]})


def _packed(function: Properties) -> Properties:
    """Source text becomes the archive that the API wants, with the module for answers of custom resources beside it."""
    source = function["Code"].get("ZipFile")
    if source is None:
        return function
    python = str(function.get("Runtime", "")).startswith("python")
    name, module = ("index.py", "cfnresponse.py") if python else ("index.js", "cfn-response.js")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr(zipfile.ZipInfo(name), source)
        bundle.writestr(
            zipfile.ZipInfo(module if python else f"node_modules/{module}"),
            (files("trainium_local.resources") / "cfn_response" / module).read_text(),
        )
    return {**function, "Code": {"ZipFile": archive.getvalue()}}


TYPES: dict[str, ResourceType] = {
    "AWS::Lambda::Function": _Function(
        service="lambda",
        create_call="CreateFunction",
        adapt=_packed,
        name_property="FunctionName",
        name_limit=64,
        physical_id="{name}",
        attributes={"Arn": "{answer[FunctionArn]}"},
        settings=(
            Setting(
                property_name="ReservedConcurrentExecutions",
                operation="PutFunctionConcurrency",
                argument="ReservedConcurrentExecutions",
                reset="DeleteFunctionConcurrency",
            ),
        ),
        update_call="UpdateFunctionConfiguration",
        delete_call="DeleteFunction",
        identified_by={"FunctionName": "{id}"},
        tagging=Tagging(identified_by={"Resource": "{attributes[Arn]}"}),
    ),
    "AWS::Lambda::Version": ApiResource(
        service="lambda",
        create_call="PublishVersion",
        physical_id="{answer[FunctionArn]}",
        attributes={"Version": "{answer[Version]}", "FunctionArn": "{answer[FunctionArn]}"},
        delete_call="DeleteFunction",
        identified_by={"FunctionName": "{properties[FunctionName]}", "Qualifier": "{attributes[Version]}"},
    ),
    "AWS::Lambda::Permission": ApiResource(
        service="lambda",
        create_call="AddPermission",
        arguments={"StatementId": "{name}"},
        name_limit=100,
        physical_id="{name}",
        attributes={"Id": "{id}"},
        delete_call="RemovePermission",
        identified_by={"FunctionName": "{properties[FunctionName]}", "StatementId": "{id}"},
    ),
}
