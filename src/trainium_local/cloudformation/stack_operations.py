"""The operations on a stack: create, import, update, roll back, delete. In the background, one thing at a time."""

import threading
from collections.abc import Callable, Collection
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from trainium_local import clock
from trainium_local.cloudformation.convergence import Convergence
from trainium_local.cloudformation.deletion import delete_all
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.rollback import take_back
from trainium_local.cloudformation.stack import Cancellation, Deployment, Region, Stack, refuse_if_imported
from trainium_local.resources import api
from trainium_local.resources.registry import CancelledError

#: Seconds that a request waits for the work it started: the CDK CLI asks at once, and then every five seconds.
RESPONSE_SECONDS = 15.0
#: And once the work waits for somebody's signals: long enough for a stand-in's.
WORKER_SECONDS = 0.5

_FAILED = {"CREATE_FAILED", "UPDATE_FAILED"}
_STABLE = {
    "CREATE_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
}
_ROLLBACK = {"CREATE": "ROLLBACK", "IMPORT": "IMPORT_ROLLBACK"} | dict.fromkeys(
    ("UPDATE", "UPDATE_ROLLBACK"), "UPDATE_ROLLBACK"
)
#: What can be made of a stack -> the states that it may be in, and how an error calls it.
_ALLOWED = {
    "CREATE": ({"REVIEW_IN_PROGRESS"}, "created"),
    "UPDATE": (_STABLE | _FAILED, "updated"),
    "IMPORT": ({"REVIEW_IN_PROGRESS"} | _STABLE, "imported into"),
}


@dataclass(frozen=True, kw_only=True)
class OnFailure:
    """`action`: ROLLBACK, DELETE or DO_NOTHING. `retain`: whether a rollback heeds a DeletionPolicy of Retain."""

    action: str = "ROLLBACK"
    retain: bool = True


def deploy(
    region: Region,
    stack: Stack,
    deployment: Deployment,
    on_failure: OnFailure,
    verb: str,
    then: Callable[[bool], None] = lambda _: None,
) -> None:
    """CREATE, UPDATE or IMPORT: bring a stack to the deployment, and call `then` with whether that succeeded.

    Raises ValidationError if the stack's state or a type forbids it.
    """
    new = deployment.template.resources
    other = [name for name, one in stack.resources.items() if name in new and new[name]["Type"] != one.resource_type]
    if other:
        raise ValidationError(
            "Update of resource type is not permitted. The new template modifies resource type of the following "
            f"resources: [{', '.join(sorted(other))}]"
        )
    if stack.status in _FAILED and on_failure.action != "DO_NOTHING":
        raise ValidationError(
            f"This stack is currently in a non-terminal [{stack.status}] state. To update the stack from this state, "
            "please use the disable-rollback parameter with update-stack API. To rollback to the last known good "
            "state, use the rollback-stack API"
        )
    minutes = stack.settings.get("TimeoutInMinutes") if verb == "CREATE" else None
    deadline = clock.now() + timedelta(minutes=minutes) if minutes else None
    begin = partial(_begin, stack, *_ALLOWED[verb], f"{verb}_IN_PROGRESS", deadline)
    _start(region, stack, begin, lambda: then(run(region, stack, deployment, on_failure, verb) is None))


def cancel_update(region: Region, stack: Stack) -> None:
    """Stop an update that runs; it is rolled back. Raises ValidationError if none does."""
    with region.lock:
        if stack.status != "UPDATE_IN_PROGRESS":
            raise ValidationError("CancelUpdateStack cannot be called from current stack status")
        stack.cancelled.set()


def delete(region: Region, stack: Stack, *, retained: Collection[str] = (), force: bool = False) -> None:
    """Delete a stack; whatever it is doing is cancelled. Raises ValidationError if that is not allowed.

    `retained` resources are left standing, and with `force` those that cannot be deleted.
    """
    if stack.deleted is not None or stack.status == "DELETE_IN_PROGRESS":
        return

    def begin() -> None:
        if (retained or force) and stack.status != "DELETE_FAILED":
            hint = "Specify a list of resources to retain" if retained else "Use the deletion mode FORCE_DELETE_STACK"
            raise ValidationError(
                f"Invalid operation on stack [{stack.stack_id}]. {hint} only when the stack is in the "
                "DELETE_FAILED state."
            )
        if stack.status.startswith("UPDATE_") and stack.status.endswith("_IN_PROGRESS"):
            raise ValidationError(f"Stack [{stack.stack_id}] cannot be deleted while in status {stack.status}")
        if stack.termination_protection:
            raise ValidationError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
        for name in sorted(stack.exports):
            refuse_if_imported(region, name, "deleted")
        stack.cancelled.set()
        stack.record("DELETE_IN_PROGRESS", "User Initiated")

    def work() -> None:
        stack.cancelled = Cancellation()
        run_delete(stack, retained=retained, force=force)

    _start(region, stack, begin, work)


def roll_back(region: Region, stack: Stack, *, retain: bool) -> None:
    """Bring a stack that failed and was not rolled back to where it last was stable."""
    verb = _ROLLBACK["CREATE" if stack.stable is None else "UPDATE"]
    begin = partial(_begin, stack, _FAILED, "rolled back", f"{verb}_IN_PROGRESS")
    _start(region, stack, begin, lambda: run_rollback(stack, verb, retain=retain))


def continue_rollback(region: Region, stack: Stack, *, skip: Collection[str], force: bool) -> None:
    """Go on with a rollback that failed, without the resources to `skip`, or with `force` whichever fails."""
    wrong = [name for name in skip if name not in stack.resources or stack.resources[name].status != "UPDATE_FAILED"]
    if wrong:
        raise ValidationError(f"Only resources in the UPDATE_FAILED state can be skipped, not [{', '.join(wrong)}]")
    begin = partial(_begin, stack, {"UPDATE_ROLLBACK_FAILED"}, "rolled back", "UPDATE_ROLLBACK_IN_PROGRESS")
    _start(region, stack, begin, lambda: run_rollback(stack, "UPDATE_ROLLBACK", skip=skip, force=force))


def _start(region: Region, stack: Stack, begin: Callable[[], None], work: Callable[[], None]) -> None:
    """Unless `begin` refuses it, run `work` in the background after what the stack is doing; wait if it is quick."""

    def run() -> None:
        try:
            if busy is not None:
                busy.join()
            work()
        finally:
            stack.answerable.set()

    with region.lock:
        begin()
        busy = stack.worker
        stack.answerable.clear()
        stack.worker = worker = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
        worker.start()
    stack.answerable.wait(RESPONSE_SECONDS)
    worker.join(WORKER_SECONDS)


def run(region: Region, stack: Stack, deployment: Deployment, on_failure: OnFailure, verb: str) -> str | None:
    """The work of `deploy`, in the caller's thread. Gives the reason of a failure."""
    operation, created = stack.cancelled, verb == "CREATE"
    keeps_on = on_failure.action == "DO_NOTHING"
    attempt = Convergence(region, stack, deployment, may_replace=created or not keeps_on)
    if stack.deployment is None:
        stack.deployment = deployment
    try:
        attempt.run()
        stack.outputs = attempt.outputs()
    except Exception as error:
        if stack.status == "DELETE_IN_PROGRESS":
            return "deleted meanwhile"
        cancelled = isinstance(error, CancelledError) and not operation.timed_out
        reason = "Resource creation cancelled" if created else "User Initiated"
        if not cancelled:
            reason = api.words(error)
        if operation.timed_out:
            reason = "Stack creation time exceeded the specified timeout."
        if (created and cancelled) or (keeps_on and not cancelled):
            stack.deployment = deployment
            stack.record(f"{verb}_FAILED", reason)
        elif created and on_failure.action == "DELETE":
            stack.record("DELETE_IN_PROGRESS", f"{reason} Delete requested by user.")
            run_delete(stack)
        else:
            back = _ROLLBACK[verb]
            stack.record(f"{back}_IN_PROGRESS", f"{reason} Rollback requested by user." if created else reason)
            run_rollback(stack, back, retain=on_failure.retain)
        return reason
    if verb in ("UPDATE", "UPDATE_ROLLBACK"):
        stack.record(f"{verb}_COMPLETE_CLEANUP_IN_PROGRESS")
        stack.updated = clock.now()
    attempt.clean_up()
    stack.deployment = stack.stable = deployment
    stack.record(f"{verb}_COMPLETE")
    return None


def run_delete(stack: Stack, *, retained: Collection[str] = (), force: bool = False) -> None:
    """The work of `delete`, in the caller's thread."""
    failed = delete_all(stack, sorted(stack.resources, key=stack.place), retained=retained, force=force)
    if failed:
        stack.record("DELETE_FAILED", f"The following resource(s) failed to delete: [{', '.join(failed)}].")
    else:
        stack.record("DELETE_COMPLETE")
        stack.deleted = clock.now()


def run_rollback(
    stack: Stack, verb: str, *, retain: bool = True, skip: Collection[str] = (), force: bool = False
) -> None:
    failed = take_back(stack, retain=retain, skip=skip, force=force)
    if failed:
        done = "update" if verb == "UPDATE_ROLLBACK" else "delete"
        stack.record(f"{verb}_FAILED", f"The following resource(s) failed to {done}: [{', '.join(failed)}].")
        return
    stack.deployment = stack.stable or stack.deployment
    stack.record(f"{verb}_COMPLETE")


def _begin(stack: Stack, allowed: set[str], done: str, status: str, deadline: datetime | None = None) -> None:
    if stack.status not in allowed:
        raise ValidationError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be {done}.")
    stack.cancelled = Cancellation(deadline=deadline)
    stack.record(status, "User Initiated")
