"""What can be asked of a stack: create, update, roll back, delete. It runs in the background, one thing at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainium_local import clock
from trainium_local.cloudformation.convergence import CancelledError, Convergence
from trainium_local.cloudformation.deletion import delete_all
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Deployment, Region, Stack, refuse_if_imported
from trainium_local.resources import api

#: Seconds that a request waits for the work it started: the CDK CLI asks at once, and then every five seconds.
PATIENCE = 15.0

_MAY_BE_UPDATED = {
    "CREATE_COMPLETE",
    "CREATE_FAILED",
    "IMPORT_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_FAILED",
    "UPDATE_ROLLBACK_COMPLETE",
}


def create(region: Region, stack: Stack, deployment: Deployment, *, rollback: bool = True) -> None:
    """Create what the deployment says in a stack that is new."""
    _begin(region, stack, {"REVIEW_IN_PROGRESS"}, "CREATE_IN_PROGRESS", "created")
    start(stack, lambda: run_create(region, stack, deployment, rollback=rollback))


def update(region: Region, stack: Stack, deployment: Deployment, *, rollback: bool = True) -> None:
    """Bring an existing stack to the deployment. Raises ValidationError if its state or a type forbids it."""
    _refuse_other_types(stack, deployment)
    _begin(region, stack, _MAY_BE_UPDATED, "UPDATE_IN_PROGRESS", "updated")
    start(stack, lambda: run_update(region, stack, deployment, rollback=rollback))


def delete(region: Region, stack: Stack) -> None:
    """Delete a stack; whatever it is doing is cancelled. Raises ValidationError if that is not allowed."""
    with region.lock:
        if stack.deleted is not None or stack.status == "DELETE_IN_PROGRESS":
            return
        _refuse_while_updated(stack)
        _refuse_if_needed_elsewhere(region, stack)
        busy = stack.worker
        stack.cancelled.set()
        stack.record("DELETE_IN_PROGRESS", "User Initiated")

    def work() -> None:
        if busy is not None:
            busy.join()
        stack.cancelled.clear()
        run_delete(stack)

    start(stack, work)


def roll_back(region: Region, stack: Stack) -> None:
    """Delete what a failed creation left, where it was told not to roll back by itself."""
    _begin(region, stack, {"CREATE_FAILED"}, "ROLLBACK_IN_PROGRESS", "rolled back")
    start(stack, lambda: _delete_rest(stack, "ROLLBACK"))


def start(stack: Stack, work: Callable[[], None]) -> None:
    """Run `work` in the background, and give it the time to finish if it is quick."""
    stack.worker = threading.Thread(target=work, daemon=True)
    stack.worker.start()
    stack.worker.join(PATIENCE)


def run_create(region: Region, stack: Stack, deployment: Deployment, *, rollback: bool = True) -> None:
    """The work of `create`, in the caller's thread."""
    stack.deployment = deployment
    attempt = Convergence(region, stack, deployment)
    try:
        attempt.run()
        stack.outputs = attempt.outputs()
        stack.record("CREATE_COMPLETE")
    except CancelledError:
        return
    except Exception as error:
        if stack.cancelled.is_set():
            return
        if not rollback:
            stack.record("CREATE_FAILED", api.words(error))
            return
        stack.record("ROLLBACK_IN_PROGRESS", f"{api.words(error)} Rollback requested by user.")
        stack.record("ROLLBACK_COMPLETE" if attempt.roll_back() else "ROLLBACK_FAILED")


def run_update(region: Region, stack: Stack, deployment: Deployment, *, rollback: bool = True) -> None:
    """The work of `update`, in the caller's thread."""
    attempt = Convergence(region, stack, deployment)
    try:
        attempt.run()
        stack.outputs = attempt.outputs()
    except CancelledError:
        return
    except Exception as error:
        if stack.cancelled.is_set():
            return
        if not rollback:
            stack.deployment = deployment
            stack.record("UPDATE_FAILED", api.words(error))
            return
        stack.record("UPDATE_ROLLBACK_IN_PROGRESS", api.words(error))
        back = attempt.roll_back()
        stack.record("UPDATE_ROLLBACK_COMPLETE" if back else "UPDATE_ROLLBACK_FAILED")
        return
    stack.record("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
    attempt.clean_up()
    stack.deployment, stack.updated = deployment, clock.now()
    stack.record("UPDATE_COMPLETE")


def run_delete(stack: Stack) -> None:
    """The work of `delete`, in the caller's thread."""
    _delete_rest(stack, "DELETE")
    if stack.status == "DELETE_COMPLETE":
        stack.deleted = clock.now()


def _delete_rest(stack: Stack, verb: str) -> None:
    failed = delete_all(stack, list(stack.resources))
    if failed:
        stack.record(f"{verb}_FAILED", f"The following resource(s) failed to delete: [{', '.join(failed)}].")
    else:
        stack.record(f"{verb}_COMPLETE")


def _begin(region: Region, stack: Stack, allowed: set[str], status: str, done: str) -> None:
    with region.lock:
        if stack.status not in allowed:
            raise ValidationError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be {done}.")
        stack.record(status, "User Initiated")


def _refuse_other_types(stack: Stack, deployment: Deployment) -> None:
    new = deployment.template.resources
    other = [
        name
        for name, resource in stack.resources.items()
        if name in new and new[name]["Type"] != resource.resource_type
    ]
    if other:
        raise ValidationError(
            "Update of resource type is not permitted. The new template modifies resource type of the following "
            f"resources: [{', '.join(sorted(other))}]"
        )


def _refuse_while_updated(stack: Stack) -> None:
    if stack.status.startswith("UPDATE_") and stack.status.endswith("_IN_PROGRESS"):
        raise ValidationError(f"Stack [{stack.stack_id}] cannot be deleted while in status {stack.status}")


def _refuse_if_needed_elsewhere(region: Region, stack: Stack) -> None:
    if stack.termination_protection:
        raise ValidationError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
    for name in sorted(output.export_name for output in stack.outputs if output.export_name):
        refuse_if_imported(region, name, "deleted")
