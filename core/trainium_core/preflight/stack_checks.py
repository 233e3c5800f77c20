"""Whether the stacks that a deployment builds on, or becomes, are in a state that takes it."""

from trainium_core.account import Account
from trainium_core.naming import BOOTSTRAP_STACK_NAME, STACK_NAME
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Answer

_STEADY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
"""States in which CloudFormation takes an update of a stack."""


def check_bootstrap(plan: Plan, account: Account) -> Answer:
    status = account.stack_status(BOOTSTRAP_STACK_NAME)
    if status in _STEADY:
        return Answer(outcome="pass", found=f"{BOOTSTRAP_STACK_NAME} is there")
    found = f"there is no stack {BOOTSTRAP_STACK_NAME}" if status is None else f"{BOOTSTRAP_STACK_NAME} is in {status}"
    fix = f"run: cdk bootstrap aws://{account.identity().account}/{plan.region}"
    return Answer(outcome="fail", found=found, fix=fix)


def check_stack(_plan: Plan, account: Account) -> Answer:
    status = account.stack_status(STACK_NAME)
    if status in (None, "REVIEW_IN_PROGRESS"):
        return Answer(outcome="pass", found=f"{STACK_NAME} is not there yet")
    if status in _STEADY:
        return Answer(outcome="pass", found=f"{STACK_NAME} is there ({status}) and will be updated")
    if status == "ROLLBACK_COMPLETE":
        found = f"{STACK_NAME} failed to be made before (ROLLBACK_COMPLETE): cdk deploy deletes the rest first"
        return Answer(outcome="warn", found=found)
    found = f"{STACK_NAME} is in {status}"
    if status.endswith("_IN_PROGRESS"):
        return Answer(outcome="fail", found=found, fix="wait until that has ended")
    return Answer(outcome="fail", found=found, fix=f"run: cdk rollback {STACK_NAME}, or cdk destroy {STACK_NAME}")
