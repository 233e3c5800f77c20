"""Taking back what was done to a stack since it was stable."""

import dataclasses
import threading
from collections.abc import Collection

from trainium_local.cloudformation.deletion import delete, make_request
from trainium_local.cloudformation.dynamic_references import with_secrets
from trainium_local.cloudformation.stack import Stack, StackResource, Step
from trainium_local.cloudformation.values import needed_by
from trainium_local.resources import api


def take_back(stack: Stack, *, retain: bool = True, skip: Collection[str] = (), force: bool = False) -> list[str]:
    """Take the steps back, the last first; gives the resources for which that failed, whose steps are kept.

    What those need is not touched. `retain`: what the operation created stays if its DeletionPolicy is Retain.
    `skip`: resources to leave as they are; with `force`, any that fails.
    """
    held, failed, left = set[str](), list[str](), list[Step]()
    for step in reversed(stack.steps):
        name = step.after.logical_id
        if name in skip:
            _leave(stack, step)
        elif name in held:
            left.append(step)
        elif not _take_back(stack, step, retain=retain):
            if force:
                _leave(stack, step)
                continue
            failed.append(name)
            left.append(step)
        else:
            continue
        held |= needed_by(step.after.definition)
    stack.steps = left[::-1]
    return failed


def turn(stack: Stack, before: StackResource, after: StackResource, *, rolls_back: bool = False) -> None:
    """Update what exists as `before` to `after`."""
    request = make_request(stack, after, secrets=True)
    if rolls_back:  # nothing cancels that
        request = dataclasses.replace(request, rolls_back=True, cancelled=threading.Event())
    previous = with_secrets(before.properties, stack.region)
    after.provisioned = after.provisioner.update(request, before.provisioned, previous)


def _leave(stack: Stack, step: Step) -> None:
    after = step.after
    if step.before is None:
        delete(stack, after, keep=True)
    else:
        stack.record_resource(after.logical_id, after.resource_type, "UPDATE_COMPLETE")


def _take_back(stack: Stack, step: Step, *, retain: bool) -> bool:
    after, before = step.after, step.before
    if before is None:
        retained = retain and after.definition.get("DeletionPolicy") == "Retain"
        return delete(stack, after, keep=retained or after.imported)
    if step.replaces:
        deleted = delete(stack, after, keep=False)
        stack.resources[before.logical_id] = before
        return deleted
    name, resource_type = before.logical_id, before.resource_type
    stack.record_resource(name, resource_type, "UPDATE_IN_PROGRESS")
    try:
        restored = dataclasses.replace(before)
        turn(stack, after, restored, rolls_back=True)
    except Exception as error:
        stack.record_resource(name, resource_type, "UPDATE_FAILED", api.words(error))
        return False
    stack.resources[name] = restored
    stack.record_resource(name, resource_type, "UPDATE_COMPLETE")
    return True
