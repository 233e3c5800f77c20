"""Deletes the resources of a stack, and creates requests to provisioners."""

import dataclasses
import threading
from collections.abc import Collection, Mapping

from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.cloudformation.values import needed_by
from trainium_local.resources import api
from trainium_local.resources.registry import ResourceRequest

KEEPS = ("Retain", "RetainExceptOnCreate")


def make_request(stack: Stack, resource: StackResource) -> ResourceRequest:
    """Return the request to a resource's provisioner."""
    return ResourceRequest(
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
    """Delete a resource, or with `keep` only remove it from the stack. Return False if the deletion failed."""

    def record(status: str, reason: str | None = None) -> None:
        physical_id = resource.physical_id
        stack.record_resource(resource.logical_id, resource.resource_type, status, reason, physical_id=physical_id)

    if keep:
        record("DELETE_SKIPPED")
    else:
        record("DELETE_IN_PROGRESS")
        try:
            # cancelling the stack's operation does not cancel the deletion
            request = dataclasses.replace(make_request(stack, resource), cancelled=threading.Event())
            resource.provisioner.delete(request, resource.provisioned)
        except Exception as error:
            record("DELETE_FAILED", api.failure_reason(error))
            return False
        record("DELETE_COMPLETE")
    if stack.resources.get(resource.logical_id) is resource:
        del stack.resources[resource.logical_id]
    return True


def delete_all(stack: Stack, logical_ids: Collection[str]) -> list[str]:
    """Delete resources, dependents first, and return those whose deletion failed.

    As on AWS, a resource that remains keeps its dependencies, such as the function of a custom resource. A failed
    deletion is retried after the others, which may have blocked it.
    """
    needs = {name: needed_by(resource.definition) for name, resource in stack.resources.items()}
    left = dependents_first(list(logical_ids), needs)
    while left:
        for place, name in enumerate(left):
            if not any(name in needs[other] for other in left[:place] if other in stack.resources):
                resource = stack.resources[name]
                delete(stack, resource, keep=resource.definition.get("DeletionPolicy") in KEEPS)
        rest = [name for name in left if name in stack.resources]
        if len(rest) == len(left):
            return [name for name in rest if stack.resources[name].status == "DELETE_FAILED"]
        left = rest
    return []


def dependents_first(logical_ids: list[str], needs: Mapping[str, set[str]]) -> list[str]:
    """Sort resources so that dependents come first.

    This cannot use the order of a template: after a failed update, the resources come from two templates.
    """
    ordered, waiting = list[str](), logical_ids[::-1]
    while waiting:
        needed = {other for name in waiting for other in needs[name] - {name}}
        # Resources from two templates can form a cycle. Then the last of `logical_ids` comes first.
        free = [name for name in waiting if name not in needed] or waiting[:1]
        ordered += free
        waiting = [name for name in waiting if name not in free]
    return ordered
