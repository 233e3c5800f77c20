"""Deletes resources of a stack, and makes the requests to their provisioners."""

import dataclasses
import threading
from collections.abc import Collection, Mapping

from trainium_local.cloudformation.dynamic_references import with_secrets
from trainium_local.cloudformation.stack import Stack, StackResource
from trainium_local.cloudformation.values import needed_by
from trainium_local.resources import api
from trainium_local.resources.registry import Request

KEEPS = ("Retain", "RetainExceptOnCreate")


def make_request(stack: Stack, resource: StackResource, *, secrets: bool = False) -> Request:
    """The request to the provisioner of a resource; with the values of `secrets` in it, or their references."""
    return Request(
        account=stack.account,
        region=stack.region,
        stack_name=stack.name,
        stack_id=stack.stack_id,
        logical_id=resource.logical_id,
        resource_type=resource.resource_type,
        properties=with_secrets(resource.properties, stack.region) if secrets else resource.properties,
        update_policy=resource.definition.get("UpdatePolicy") or {},
        cancelled=stack.cancelled,
    )


def delete(stack: Stack, resource: StackResource, *, keep: bool) -> bool:
    """Delete one resource, or leave it standing outside the stack if it is to be kept; False if it did not go."""

    def record(status: str, reason: str | None = None) -> None:
        physical_id = resource.physical_id
        stack.record_resource(resource.logical_id, resource.resource_type, status, reason, physical_id=physical_id)

    if keep:
        record("DELETE_SKIPPED")
    else:
        record("DELETE_IN_PROGRESS")
        try:
            # what cancelled the stack's operation does not cancel this
            request = dataclasses.replace(make_request(stack, resource), cancelled=threading.Event())
            resource.provisioner.delete(request, resource.provisioned)
        except Exception as error:
            record("DELETE_FAILED", api.words(error))
            return False
        record("DELETE_COMPLETE")
    if stack.resources.get(resource.logical_id) is resource:
        del stack.resources[resource.logical_id]
    return True


def delete_all(stack: Stack, logical_ids: Collection[str]) -> list[str]:
    """Delete resources, those that others need last; gives back what did not go.

    As on AWS, what did not go keeps what it needs, such as the function of a custom resource; and a failure is tried
    again after the others, which may have stood in its way.
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
    """By what the resources name, and not by a template: after a failed update they are of two."""
    ordered, waiting = list[str](), logical_ids[::-1]
    while waiting:
        needed = {other for name in waiting for other in needs[name] - {name}}
        # Of two templates, they may name each other: then the youngest goes first.
        free = [name for name in waiting if name not in needed] or waiting[:1]
        ordered += free
        waiting = [name for name in waiting if name not in free]
    return ordered
