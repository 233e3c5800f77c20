"""Deleting resources of a stack, and what a provisioner is told about one."""

from __future__ import annotations

from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.resources import api
from trainium_local.resources.registry import Request

KEEPS = ("Retain", "RetainExceptOnCreate")


def make_request(stack: Stack, resource: StackResource) -> Request:
    """What a provisioner is told about a resource."""
    return Request(
        account=stack.account,
        region=stack.region,
        stack_name=stack.name,
        stack_id=stack.stack_id,
        logical_id=resource.logical_id,
        resource_type=resource.resource_type,
        properties=resource.properties,
        update_policy=resource.definition.get("UpdatePolicy") or {},
        cancelled=stack.cancelled,
    )


def delete(stack: Stack, resource: StackResource, *, keep: bool) -> bool:
    """Delete one resource, or leave it standing outside the stack if it is to be kept; False if it did not go."""
    logical_id, resource_type, physical_id = resource.logical_id, resource.resource_type, resource.physical_id
    if keep:
        stack.record_resource(logical_id, resource_type, "DELETE_SKIPPED", physical_id)
    else:
        stack.record_resource(logical_id, resource_type, "DELETE_IN_PROGRESS", physical_id)
        try:
            resource.provisioner.delete(make_request(stack, resource), resource.provisioned)
        except Exception as error:
            stack.record_resource(logical_id, resource_type, "DELETE_FAILED", physical_id, api.words(error))
            return False
        stack.record_resource(logical_id, resource_type, "DELETE_COMPLETE", physical_id)
    if stack.resources.get(logical_id) is resource:
        del stack.resources[logical_id]
    return True


def delete_all(stack: Stack, logical_ids: list[str]) -> list[str]:
    """Delete resources, those that others need last; gives back what did not go.

    As on AWS a failure is tried again after the others: what stood in its way may be gone.
    """
    left = _dependents_first(stack, logical_ids)
    while left:
        failed = [
            name
            for name in left
            if not delete(
                stack,
                stack.resources[name],
                keep=stack.resources[name].definition.get("DeletionPolicy") in KEEPS,
            )
        ]
        if len(failed) == len(left):
            return failed
        left = failed
    return []


def _dependents_first(stack: Stack, logical_ids: list[str]) -> list[str]:
    order = stack.deployment.template.order if stack.deployment else []
    return sorted(logical_ids, key=lambda name: order.index(name) if name in order else -1, reverse=True)
