"""Nested stacks: resources of the type AWS::CloudFormation::Stack."""

from collections.abc import Collection
from typing import Any

from trainium_local.cloudformation import stack_operations
from trainium_local.cloudformation.change_sets import differs
from trainium_local.cloudformation.convergence import Convergence
from trainium_local.cloudformation.deployment import fetch_template, prepare
from trainium_local.cloudformation.stack import Deployment, Region, Stack, stack_region
from trainium_local.cloudformation.values import as_text
from trainium_local.resources import handler_permissions
from trainium_local.resources.registry import (
    CancelledError,
    Properties,
    Provisioned,
    ProvisioningError,
    ResourceRequest,
    ResourceType,
)
from trainium_local.tags import tag_values

_SUPPORTED = frozenset({"NotificationARNs", "Parameters", "Tags", "TemplateURL"})


class NestedStack(ResourceType):
    """Deploys a nested stack within the operation of its parent.

    An updated stack keeps what it no longer needs until the parent's update succeeded; if that fails, the stack is
    rolled back with the parent.
    """

    def __init__(self) -> None:
        self._attempts: dict[str, Convergence] = {}

    def unsupported(self, properties: Collection[str]) -> list[str]:
        return sorted(set(properties) - _SUPPORTED)

    def create(self, request: ResourceRequest) -> Provisioned:
        handler_permissions.refuse_unless_allowed(request, "create")
        region = _region(request)
        parent = region.get(request.stack_id)
        deployment = _deployment(request, parent)
        stack = region.new_stack(request.generated_name(), parent)
        kind, started = request.resource_type, "Resource creation Initiated"
        parent.record_resource(request.logical_id, kind, "CREATE_IN_PROGRESS", started, physical_id=stack.stack_id)
        attempt = self._converge(request, stack, deployment, "CREATE")
        stack_operations.complete(attempt, "CREATE")
        return _provisioned(stack)

    def update(
        self,
        request: ResourceRequest,
        current: Provisioned,
        previous: Properties,  # noqa: ARG002
    ) -> Provisioned:
        stack = _region(request).get(current.physical_id)
        attempt = self._attempts.pop(stack.stack_id, None)
        if attempt is not None:  # the parent rolls back an update that succeeded here
            stack.record("UPDATE_ROLLBACK_IN_PROGRESS")
            stack_operations.record_end(stack, "UPDATE_ROLLBACK", attempt.roll_back(), "update")
            if stack.status.endswith("_FAILED"):
                raise ProvisioningError(_reason(stack, "updated"))
            return _provisioned(stack)
        deployment = _deployment(request, _region(request).get(request.stack_id))
        if differs(stack, deployment):
            handler_permissions.refuse_unless_allowed(request, "update")
            self._attempts[stack.stack_id] = self._converge(request, stack, deployment, "UPDATE")
        return _provisioned(stack)

    def complete(self, current: Provisioned) -> None:
        attempt = self._attempts.pop(current.physical_id, None)
        if attempt is not None:
            stack_operations.complete(attempt, "UPDATE")

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        handler_permissions.refuse_unless_allowed(request, "delete")
        stack = _region(request).get(current.physical_id)
        if stack.deleted is None:
            stack.record("DELETE_IN_PROGRESS", "User Initiated")
            stack_operations.delete_resources(stack)
        if stack.deleted is None:
            raise ProvisioningError(_reason(stack, "deleted"))

    def _converge(self, request: ResourceRequest, stack: Stack, deployment: Deployment, verb: str) -> Convergence:
        settings = _settings(request, stack)
        stack_operations.begin(stack, deployment, verb, settings, request.cancelled)
        attempt = stack_operations.converge(_region(request), stack, deployment, verb)
        if attempt is not None:
            return attempt
        if request.cancelled.is_set():
            raise CancelledError(leftover=_provisioned(stack))
        raise ProvisioningError(_reason(stack, f"{verb.lower()}d"), leftover=_provisioned(stack))


def _region(request: ResourceRequest) -> Region:
    return stack_region(request.account, request.region)


def _settings(request: ResourceRequest, stack: Stack) -> dict[str, Any]:
    inherited = stack.parent.settings if stack.parent else {}
    return {**inherited, "NotificationARNs": request.properties.get("NotificationARNs") or []}


def _deployment(request: ResourceRequest, parent: Stack) -> Deployment:
    properties = request.properties
    return prepare(
        _region(request),
        fetch_template(properties["TemplateURL"], request.region),
        {name: as_text(value) for name, value in (properties.get("Parameters") or {}).items()},
        tag_values(properties.get("Tags")),
        parent.settings.get("Capabilities") or [],
    )


def _provisioned(stack: Stack) -> Provisioned:
    outputs = {f"Outputs.{output['OutputKey']}": output["OutputValue"] for output in stack.outputs}
    return Provisioned(physical_id=stack.stack_id, attributes=outputs)


def _reason(stack: Stack, done: str) -> str:
    """Return the reason of a failure, from the event that began the rollback or ended the deletion."""
    begun = ("ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "DELETE_FAILED")
    own = [event for event in stack.events if event["PhysicalResourceId"] == stack.stack_id]
    event = next(event for event in reversed(own) if event["ResourceStatus"] in begun)
    reason = str(event["ResourceStatusReason"]).removesuffix(" Rollback requested by user.")
    return f"Embedded stack {stack.stack_id} was not successfully {done}: {reason}"
