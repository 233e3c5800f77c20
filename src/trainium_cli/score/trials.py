"""One trial each: a template, or a deployment that has to be refused."""

import json
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from trainium_cli.score.account import Account
from trainium_cli.score.corpus import Deployment, WrongDeployment
from trainium_cli.score.inventory import inventory
from trainium_cli.score.outcome import NO_ANSWER, FailedError, Outcome
from trainium_cli.score.parameters import values
from trainium_cli.score.stack import Stack

CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
TAGS = {"trn:score": "updated"}
DESCRIPTION = "Updated to see whether it can be"
NOT_DONE = (FailedError, *NO_ANSWER)


def try_template(account: Account, deployment: Deployment, *, limit: float) -> Outcome:
    """Deploy a template, update it with a tag of the stack and another description, delete it, look what is left."""
    with trial(account, deployment.name) as outcome, finding_leftovers(account, outcome):
        go_through(account, deployment, outcome, limit=limit)
    return outcome


def try_wrong(account: Account, wrong: WrongDeployment, *, limit: float) -> Outcome:
    """Refused with the reason that it has to be, and the valid twin, if it has one, deployed."""
    with trial(account, wrong.name) as outcome:
        try:
            _refuse(account, wrong, limit)
            if wrong.valid:
                _deploy(account, wrong, wrong.valid, limit)
            outcome.refused = True
        except NOT_DONE as error:
            outcome.reason = str(error)
    return outcome


def go_through(account: Account, deployment: Deployment, outcome: Outcome, *, limit: float) -> None:
    """Deploy, update and delete a template, and put into `outcome` how far that came."""
    template = deployment.template
    stack = Stack(
        account,
        _stack_name(deployment.name),
        limit=limit,
        parameters=values(template.parameters, account.existing),
        capabilities=CAPABILITIES,
    )

    def deploy() -> None:
        stack.create(template.body)
        outcome.count(template.document, stack.resources(), account.server.created)

    changed = json.dumps({**template.document, "Description": DESCRIPTION}, default=str)
    through(outcome, deploy, lambda: stack.update(changed, TAGS), stack.delete)


def through(
    outcome: Outcome, deploy: Callable[[], object], update: Callable[[], object], delete: Callable[[], object]
) -> None:
    """Take the three steps, and put into `outcome` how far that came. Deletes what could not be deployed too."""
    try:
        deploy()
        outcome.deployed = True
        update()
        outcome.updated = True
    except NOT_DONE as error:
        outcome.reason = str(error)
    try:
        delete()
        outcome.deleted = outcome.deployed
    except NOT_DONE as error:
        outcome.reason = outcome.reason or str(error)


@contextmanager
def trial(account: Account, name: str) -> Generator[Outcome]:
    """Time a trial and count what the server answers with 500 meanwhile. A spoiled account is renewed."""
    outcome, started, errors = Outcome(name=name), time.monotonic(), account.internal_errors()
    yield outcome
    outcome.seconds = time.monotonic() - started
    outcome.internal_errors = account.internal_errors() - errors
    if account.spoiled:
        account.renew()


@contextmanager
def finding_leftovers(account: Account, outcome: Outcome) -> Generator[None]:
    """Put into `outcome` what is left behind. That, or a stack that could not be deleted, spoils the account."""
    before = inventory(account.client)
    yield
    left = inventory(account.client) - before
    outcome.left_behind = sorted(one for one in left if not any(kept in one for kept in outcome.kept))
    account.spoiled = bool(outcome.left_behind) or outcome.deployed > outcome.deleted


def _refuse(account: Account, wrong: WrongDeployment, limit: float) -> None:
    """Raise FailedError unless the wrong template, or the wrong update of a right one, is refused as it has to be."""
    message = ""
    with _stack(account, wrong, limit) as stack:
        if wrong.update:
            stack.create(json.dumps(wrong.template))
        try:
            if wrong.update:
                stack.update(json.dumps(wrong.update), {})
            else:
                stack.create(json.dumps(wrong.template))
        except NOT_DONE as error:
            message = str(error)
    if not message:
        raise FailedError("accepted")
    if wrong.refused not in message:
        raise FailedError(f"refused, but without a word of {wrong.refused!r}: {message}")


def _deploy(account: Account, wrong: WrongDeployment, template: Any, limit: float) -> None:
    with _stack(account, wrong, limit) as stack:
        try:
            stack.create(json.dumps(template))
        except NOT_DONE as error:
            raise FailedError(f"the valid twin is refused too: {error}") from error


@contextmanager
def _stack(account: Account, wrong: WrongDeployment, limit: float) -> Generator[Stack]:
    """A stack for one template of a wrong deployment; what cannot be deleted of it is left."""
    stack = Stack(
        account, _stack_name(wrong.name), limit=limit, parameters=wrong.parameters, capabilities=wrong.capabilities
    )
    try:
        yield stack
    finally:
        try:
            stack.delete()
        except NOT_DONE:
            account.spoiled = True


def _stack_name(name: str) -> str:
    """Short, as people choose names: templates put it before the names of what they make."""
    return "score-" + re.sub(r"[^A-Za-z0-9]+", "-", name.rpartition(".")[0] or name)[-14:].strip("-")
