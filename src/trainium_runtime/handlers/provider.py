"""Implements the custom resources of a stack, except the readiness of its fleet.

Only CloudFormation invokes this function. Its role can only read; buckets of the stack allow it to write to them.
"""

from typing import Any

from trainium_runtime.launch_template_version import RESOURCE_TYPE as LAUNCH_TEMPLATE_VERSION

from . import bucket_content, launch_template_version, node_subnet, quota_check, script_copy
from .custom_resource import Result, respond

_PROVIDE = {
    LAUNCH_TEMPLATE_VERSION: launch_template_version.provide,
    **{module.RESOURCE_TYPE: module.provide for module in (bucket_content, node_subnet, quota_check, script_copy)},
}
_DELETE = {bucket_content.RESOURCE_TYPE: bucket_content.delete}
"""Deletes a resource. Resources of other types need no deletion."""


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    physical_id = event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        result = _result(event, physical_id)
    except Exception as error:  # CloudFormation needs a response
        respond(event, failure=str(error) or repr(error), physical_id=physical_id)
        return
    respond(event, physical_id=result.physical_id, data=result.data)


def _result(event: dict[str, Any], physical_id: str) -> Result:
    if event["RequestType"] != "Delete":
        return _PROVIDE[event["ResourceType"]](event)
    if delete := _DELETE.get(event["ResourceType"]):
        delete(event)
    return Result(physical_id=physical_id)
