"""Creates, updates and deletes stacks in the background, one operation at a time for each stack."""

import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

from trainium_local import clock
from trainium_local.cloudformation.convergence import Convergence
from trainium_local.cloudformation.deletion import delete_all
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Deployment, Region, Stack, refuse_if_imported
from trainium_local.resources import api

#: Seconds that a request waits at most for its operation. The CDK CLI polls at once, then every five seconds.
RESPONSE_SECONDS = 15.0

#: Operation -> the stack states that permit it, and its name in errors.
_ALLOWED = {
    "CREATE": ({"REVIEW_IN_PROGRESS"}, "created"),
    "UPDATE": ({"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}, "updated"),
}


def deploy(
    region: Region,
    stack: Stack,
    deployment: Deployment,
    verb: str,
    *,
    settings: Mapping[str, Any],
    then: Callable[[bool], None] = lambda _: None,
) -> None:
    """Create or update a stack.

    Args:
        region: The region of the stack.
        stack: The stack.
        deployment: The target.
        verb: CREATE or UPDATE.
        settings: Request parameters for the stack's `settings`.
        then: Is called at the end of the operation, with whether it succeeded.

    Raises:
        ValidationError: The stack's state or a resource type does not permit the operation.
    """

    def work() -> None:
        attempt = converge(region, stack, deployment, verb)
        if attempt is not None:
            complete(attempt, verb)
        then(attempt is not None)

    _start(region, stack, lambda: begin(stack, deployment, verb, settings, threading.Event()), work)


def begin(
    stack: Stack, deployment: Deployment, verb: str, settings: Mapping[str, Any], cancelled: threading.Event
) -> None:
    """Record the start of a creation or update that `cancelled` cancels. Raise ValidationError if it is not allowed."""
    allowed, done = _ALLOWED[verb]
    if stack.status not in allowed:
        raise ValidationError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be {done}.")
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
    stack.cancelled = cancelled
    stack.settings |= settings
    stack.record(f"{verb}_IN_PROGRESS", "User Initiated")


def delete(region: Region, stack: Stack) -> None:
    """Delete a stack, and cancel its creation.

    Raises:
        ValidationError: The stack cannot be deleted.
    """
    if stack.deleted is not None or stack.status == "DELETE_IN_PROGRESS":
        return

    def begin() -> None:
        if stack.status.startswith("UPDATE_") and stack.status.endswith("_IN_PROGRESS"):
            raise ValidationError(f"Stack [{stack.stack_id}] cannot be deleted while in status {stack.status}")
        if stack.termination_protection:
            raise ValidationError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
        for name in sorted(stack.exports):
            refuse_if_imported(region, name, "deleted")
        stack.cancelled.set()
        stack.record("DELETE_IN_PROGRESS", "User Initiated")

    _start(region, stack, begin, lambda: delete_resources(stack))


def _start(region: Region, stack: Stack, begin: Callable[[], None], work: Callable[[], None]) -> None:
    """Run `work` in the background once `begin` accepts it and earlier operations ended. Wait briefly for its end."""

    def run() -> None:
        if busy is not None:
            busy.join()
        work()

    with region.lock:
        begin()
        busy = stack.worker
        # the context contains the credentials for calls
        stack.worker = worker = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
        worker.start()
    worker.join(RESPONSE_SECONDS)


def converge(region: Region, stack: Stack, deployment: Deployment, verb: str) -> Convergence | None:
    """Bring a stack to a deployment, or roll back and return None. `complete` deletes unneeded resources."""
    attempt = Convergence(region, stack, deployment)
    stack.deployment = stack.deployment or deployment
    try:
        attempt.run()
    except Exception as error:
        if stack.cancelled.is_set():
            return None
        created = verb == "CREATE"
        back, reason = "ROLLBACK" if created else "UPDATE_ROLLBACK", api.failure_reason(error)
        stack.record(f"{back}_IN_PROGRESS", f"{reason} Rollback requested by user." if created else reason)
        record_end(stack, back, attempt.roll_back(), "delete" if created else "update")
        return None
    if verb == "UPDATE":
        stack.record("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        stack.updated = clock.now()
    return attempt


def complete(attempt: Convergence, verb: str) -> None:
    """End a successful creation or update."""
    attempt.clean_up()
    attempt.stack.deployment = attempt.deployment
    attempt.stack.record(f"{verb}_COMPLETE")


def delete_resources(stack: Stack) -> None:
    """Delete the resources of a stack, and record the end of its deletion."""
    failed = delete_all(stack, sorted(stack.resources, key=stack.place))
    record_end(stack, "DELETE", failed, "delete")
    if not failed:
        stack.deleted = clock.now()


def record_end(stack: Stack, operation: str, failed: list[str], verb: str) -> None:
    """Record the end of a rollback or deletion that failed for these resources."""
    if failed:
        stack.record(f"{operation}_FAILED", f"The following resource(s) failed to {verb}: [{', '.join(failed)}].")
    else:
        stack.record(f"{operation}_COMPLETE")
