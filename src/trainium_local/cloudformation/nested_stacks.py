"""AWS::CloudFormation::Stack: a stack as a resource of another, made in the other's thread."""

from trainium_local.cloudformation import stack_operations, template_source
from trainium_local.cloudformation.change_sets import differs
from trainium_local.cloudformation.deployment import prepare
from trainium_local.cloudformation.stack import STACK, Cancellation, Deployment, Region, Stack, region_of
from trainium_local.cloudformation.stack_operations import OnFailure
from trainium_local.resources.registry import (
    CancelledError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
    ResourceType,
)
from trainium_local.tags import tag_values


class NestedStack:
    """Its attributes are Outputs.NAME."""

    waits = True

    def create(self, request: Request) -> Provisioned:
        region = region_of(request.account, request.region)
        deployment = _deployment(region, request)
        stack, parent = region.new_stack(request.generated_name()), region.get(request.stack_id)
        stack.parent_id, stack.root_id = parent.stack_id, parent.root_id or parent.stack_id
        stack.termination_protection = parent.termination_protection
        return _bring(region, stack, deployment, request, "CREATE")

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        region = region_of(request.account, request.region)
        stack, deployment = region.get(current.physical_id), _deployment(region, request)
        if request.rolls_back and stack.steps:
            stack.record("UPDATE_ROLLBACK_IN_PROGRESS")
            stack_operations.run_rollback(stack, "UPDATE_ROLLBACK")
        elif not request.rolls_back or differs(stack, deployment):
            return _bring(region, stack, deployment, request, "UPDATE_ROLLBACK" if request.rolls_back else "UPDATE")
        return _succeeded(stack, "updated", stack.status_reason)

    def delete(self, request: Request, current: Provisioned) -> None:
        stack = region_of(request.account, request.region).get(current.physical_id)
        stack.record("DELETE_IN_PROGRESS")
        stack_operations.run_delete(stack)
        _succeeded(stack, "deleted", stack.status_reason)


def _bring(region: Region, stack: Stack, deployment: Deployment, request: Request, verb: str) -> Provisioned:
    stack.cancelled = Cancellation(whole=request.cancelled)
    stack.record(f"{verb}_IN_PROGRESS")
    reason = stack_operations.run(region, stack, deployment, OnFailure(), verb)
    if reason is not None and request.cancelled.is_set():
        raise CancelledError(_provisioned(stack))
    return _succeeded(stack, "created" if verb == "CREATE" else "updated", reason)


def _deployment(region: Region, request: Request) -> Deployment:
    body = template_source.fetch(request.properties["TemplateURL"], request.region)
    given = {
        name: ",".join(value) if isinstance(value, list) else str(value)
        for name, value in (request.properties.get("Parameters") or {}).items()
    }
    tags = tag_values(request.properties.get("Tags"))
    return prepare(region, body, given, tags, region.get(request.stack_id).capabilities)


def _succeeded(stack: Stack, done: str, reason: str | None) -> Provisioned:
    if reason is not None:
        raise ProvisioningError(
            f"Embedded stack {stack.stack_id} was not successfully {done}: {reason}", leftover=_provisioned(stack)
        )
    return _provisioned(stack)


def _provisioned(stack: Stack) -> Provisioned:
    attributes = {f"Outputs.{output['OutputKey']}": output["OutputValue"] for output in stack.outputs}
    return Provisioned(physical_id=stack.stack_id, attributes=attributes)


TYPES: dict[str, ResourceType] = {STACK: NestedStack()}
