"""AWS::CloudFormation::Stack: a stack as a resource of another, made in the other's thread."""

from __future__ import annotations

from trainium_local.cloudformation import stack_operations, template_source
from trainium_local.cloudformation.deployment import prepare
from trainium_local.cloudformation.stack import STACK, Deployment, Region, Stack, region_of
from trainium_local.resources.registry import (
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)


class NestedStack:
    """Its attributes are Outputs.NAME."""

    def create(self, request: Request) -> Provisioned:
        region = region_of(request.account, request.region)
        deployment = _deployment(region, request)
        stack = region.new_stack(request.generated_name())
        stack.parent_id, stack.cancelled = request.stack_id, request.cancelled
        stack.record("CREATE_IN_PROGRESS", "User Initiated")
        stack_operations.run_create(region, stack, deployment)
        return _succeeded(stack, "CREATE_COMPLETE")

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        region = region_of(request.account, request.region)
        stack = region.get(current.physical_id)
        stack.record("UPDATE_IN_PROGRESS", "User Initiated")
        stack_operations.run_update(region, stack, _deployment(region, request))
        return _succeeded(stack, "UPDATE_COMPLETE")

    def delete(self, request: Request, current: Provisioned) -> None:
        stack = region_of(request.account, request.region).get(current.physical_id)
        stack.record("DELETE_IN_PROGRESS", "User Initiated")
        stack_operations.run_delete(stack)
        _succeeded(stack, "DELETE_COMPLETE")


def _deployment(region: Region, request: Request) -> Deployment:
    body = template_source.fetch(request.properties["TemplateURL"], request.region)
    given = {
        name: ",".join(value) if isinstance(value, list) else str(value)
        for name, value in (request.properties.get("Parameters") or {}).items()
    }
    tags = {tag["Key"]: tag["Value"] for tag in request.properties.get("Tags") or []}
    return prepare(region, body, given, tags)


def _succeeded(stack: Stack, status: str) -> Provisioned:
    provisioned = Provisioned(
        physical_id=stack.stack_id,
        attributes={f"Outputs.{output.key}": output.value for output in stack.outputs},
    )
    if stack.status != status:
        raise ProvisioningError(
            f"Embedded stack {stack.stack_id} ended as {stack.status}: {stack.status_reason}", leftover=provisioned
        )
    return provisioned


TYPES: dict[str, ResourceType] = {STACK: NestedStack()}
