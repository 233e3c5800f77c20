"""Putting a cluster to sleep and waking it, as `trn sleep` and `trn wake` do."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from trainium_cli.course import Course
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import read_plan
from trainium_cli.waiting import waiting
from trainium_core.account import CannotTellError
from trainium_core.account.sleep import Sleeper, SleepState
from trainium_core.account.stack_events import StackEvent
from trainium_core.account.teardown import OrderRefusedError
from trainium_core.adapters.prices import AwsPrices
from trainium_core.adapters.sleep_control import AwsSleepControl
from trainium_core.cost import estimate
from trainium_core.deployment_failure import deployment_failure
from trainium_core.naming import STACK_NAME
from trainium_core.plan import Plan
from trainium_core.stack_course import follow

_STEADY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")


def switch(overrides: tuple[str, ...], cdk_json: Path | None, *, asleep: bool, yes: bool) -> NoReturn:
    """Put the cluster to sleep, or wake it; ends the command."""
    plan = read_plan(cdk_json, overrides, as_json=False, ignoring=("setup_script",))
    account = AwsSleepControl(plan.region)
    try:
        with waiting(f"Asking AWS for {STACK_NAME} in {plan.region} ..."):
            state = account.sleep_state(STACK_NAME)
        _refuse(plan, state)
        assert state is not None
        if state.asleep == asleep:
            _end(ExitCode.OK, f"{plan.cluster_name} is {'asleep' if asleep else 'awake'} already.")
        _say_what(plan, asleep=asleep)
        if not yes and not click.confirm("Put it to sleep?" if asleep else "Wake it?"):
            _end(ExitCode.NOT_READY, "Nothing was changed.")
        _update(account, plan, asleep=asleep)
    except CannotTellError as error:
        _end(ExitCode.COULD_NOT_TELL, f"Could not tell: {error}")
    except OrderRefusedError as error:
        _end(ExitCode.NOT_READY, f"Nothing was changed: {error}")


def _refuse(plan: Plan, state: SleepState | None) -> None:
    """End the command for a stack that cannot be updated now, or not at all."""
    told = None
    if state is None:
        told = f"There is no stack {STACK_NAME} in {plan.region}: `trn deploy` makes it."
    elif state.cluster != plan.cluster_name:
        told = f"The stack {STACK_NAME} is one of {state.cluster or 'no cluster'}, and not of {plan.cluster_name}."
    elif state.asleep is None:
        told = f"{STACK_NAME} was deployed by an older version and knows no sleep: run `trn deploy` once."
    elif state.status not in _STEADY:
        told = f"{STACK_NAME} is in {state.status}: wait until that has ended, or see `trn preflight`."
    if told is not None:
        _end(ExitCode.NOT_READY, told)


def _say_what(plan: Plan, *, asleep: bool) -> None:
    with waiting("Asking AWS for prices ..."):
        estimated = estimate(plan, aws=AwsPrices(plan.region))
    if asleep:
        click.echo(
            f"{plan.cluster_name} goes to sleep: its {plan.nodes} nodes end, and with them what is on their disks; "
            "so do its paid ways out of the network. Cache and file systems stay.\n"
            f"  awake:  {estimated.running_hour} per hour\n"
            f"  asleep: {estimated.asleep_month} per month, and what is stored\n"
        )
    else:
        click.echo(
            f"{plan.cluster_name} wakes up: {plan.nodes} x {plan.instance_type}, {plan.capacity}.\n"
            f"  awake:  {estimated.running_hour} per hour\n"
        )


def _update(account: Sleeper, plan: Plan, *, asleep: bool) -> NoReturn:
    before = account.last_event(STACK_NAME)
    account.set_asleep(STACK_NAME, asleep=asleep)
    try:
        events = _followed(account, before)
    except KeyboardInterrupt:
        _end(ExitCode.NOT_READY, "\nInterrupted: CloudFormation goes on by itself. Run the command again to see.")
    failure = deployment_failure(events)
    if failure is None:
        told = "is asleep. `trn wake` brings its nodes back." if asleep else "is awake, and every node is proven."
        _end(ExitCode.OK, f"{plan.cluster_name} {told}")
    reasons = "\n".join(f"  {reason}" for reason in failure.reasons)
    told = f"{reasons}\nState: {failure.state}.\nNext:  {failure.advice}."
    _end(ExitCode.NOT_READY, f"{plan.cluster_name} could not be {'put to sleep' if asleep else 'woken'}:\n{told}")


def _followed(account: Sleeper, before: str | None) -> Sequence[StackEvent]:
    with Course() as course:

        def tell(told: str) -> None:
            course.tell(STACK_NAME, told)

        return follow(account, STACK_NAME, after=before, tell=tell, pause=time.sleep)


def _end(code: ExitCode, message: str) -> NoReturn:
    click.echo(message, err=code is not ExitCode.OK)
    raise click.exceptions.Exit(code)
