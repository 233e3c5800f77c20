"""Carries out the decision of `trn sleep` and `trn wake`."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from trainium_cli.cluster.node_end import has_job, running_job_sentence
from trainium_cli.cluster_choice import cluster_stack_name, missing_stack, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import finish_before_exit, interrupt_message
from trainium_cli.invocation import Invocation
from trainium_cli.plan.plan_report import pilot_end_text
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import say
from trainium_cli.waiting import waiting
from trainium_core.aws.capacity import AwsCapacity
from trainium_core.aws.prices import AwsPrices
from trainium_core.capacity.block_start import block_start
from trainium_core.costs.estimate import estimate
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import nodes_report
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import minute_text, read_pilot_end
from trainium_core.polling import Polling
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.sleep.aws_account import AwsSleepControl
from trainium_core.sleep.decision import ObservedStack, SleepChange, Want, decide
from trainium_core.sleep.state import SleepState
from trainium_core.stacks.aws_events import follow
from trainium_core.stacks.deployed_stack import STABLE_STATUSES
from trainium_core.stacks.deployment_failure import deployment_failure
from trainium_core.stacks.events import StackEvent
from trainium_core.teardown.notice import NotifyNodes
from trainium_core.teardown.run import run_step
from trainium_core.teardown.steps import EmptyGroups, StepProgress
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_IMAGE_IS_GONE = (
    "The SSM parameter of the image no longer exists. To wake the cluster with another image, run "
    "`trn deploy -c trn:ami=AMI`, with the ID of an image or another parameter."
)
_NOTICE = "sleep"
_NOTIFIED = "Interrupted: the nodes keep running, and are billed. The notice to them might not have been withdrawn."
_WITHDRAWN = "Interrupted: the nodes keep running, and are billed. The notice to them was withdrawn."
_ENDING = (
    "Interrupted: Auto Scaling continues to terminate the nodes. Everything else keeps running, and is billed. "
    "`trn status` shows the progress."
)
_INCOMPLETE = "Interrupted: the change may be incomplete. `trn status` shows the state; run the command again."
_LAUNCHED = "Interrupted: the nodes are launched, and billed. `trn nodes` shows them."


@dataclass(frozen=True)
class _Target:
    account: AwsSleepControl
    plan: Plan
    stack: str
    state: SleepState
    block_begins: datetime | None

    @property
    def ends(self) -> datetime | None:
        """The end of the pilot."""
        ends, created = self.plan.pilot.ends, self.state.created
        return read_pilot_end(ends).instant(created, self.block_begins) if ends and created else None


@interrupt_message("Interrupted: nothing was changed.")
def switch(
    invocation: Invocation, given_stack: str | None, want: Want, *, yes: bool, grace: timedelta = timedelta()
) -> str:
    """Put the cluster to sleep, or wake it.

    Args:
        invocation: The options that select the cluster.
        given_stack: The stack of --stack.
        want: The wanted state.
        yes: Do not prompt.
        grace: Time between the notice to nodes and their end.

    Returns:
        A sentence about the new state.

    Raises:
        CliError: The wanted state was not reached.
        PlanError: The plan has mistakes.
        UnavailableError: AWS could not be read.
    """
    plan = read_cluster_plan(invocation)
    stack = cluster_stack_name(invocation, plan, given_stack)
    account = AwsSleepControl(plan.region, clients=invocation.clients)
    with waiting(f"Asking AWS for {stack} in {plan.region} ..."):
        state = account.sleep_state(stack)
        if state is None:
            raise missing_stack(invocation, plan, stack)
        target = _Target(account, plan, stack, state, _block_begins(invocation, plan) if want == "awake" else None)
        decision = decide(_observe(target), want)
    if decision.action == "refuse":
        raise CliError(decision.message, ExitCode.NOT_READY)
    if decision.action == "nothing":
        return decision.message
    _confirm(invocation, target, want, yes=yes)
    with interrupt_message(_INCOMPLETE):
        if want == "asleep":
            _give_notice(target, grace, partial(has_job, invocation, plan, stack))
        return _carry_out(target, decision, want)


def _block_begins(invocation: Invocation, plan: Plan) -> datetime | None:
    capacity = AwsCapacity(plan.region, clients=invocation.clients)
    return block_start(plan.pilot.ends, capacity, capacity=plan.capacity, reservation_id=plan.reservation_id)


def _observe(target: _Target) -> ObservedStack:
    groups = target.account.node_groups(target.state.groups)
    return ObservedStack(
        stack=target.stack,
        state=target.state,
        has_nodes=any(group.wanted or sum(group.instances.values()) for group in groups),
        wants_nodes=any(group.wanted for group in groups),
        cluster=target.plan.cluster_name,
        has_schedule=target.plan.capacity == CAPACITY_BLOCK,
        ends=target.ends,
        now=datetime.now(UTC),
    )


def _carry_out(target: _Target, decision: SleepChange, want: Want) -> str:
    match decision.action:
        case "launch nodes":
            return _launch(target)
        case "terminate nodes":
            return _end_nodes(target)
        case _:
            return _put_to_sleep(target) if want == "asleep" else _wake(target)


def _confirm(invocation: Invocation, target: _Target, want: Want, *, yes: bool) -> None:
    """Show the changes and costs, and ask for confirmation. Raises CliError if declined."""
    _announce(invocation, target, want)
    question = "Put it to sleep?" if want == "asleep" else "Wake it?"
    if not yes and not click.confirm(question):
        raise CliError("Nothing was changed.", ExitCode.NOT_READY)


def _announce(invocation: Invocation, target: _Target, want: Want) -> None:
    plan = target.plan
    with waiting("Asking AWS for prices ..."):
        estimated = estimate(plan, aws=AwsPrices(plan.region, clients=invocation.clients))
        job = running_job_sentence(invocation, plan, target.stack) if want == "asleep" else None
    nodes = f"its running nodes (up to {plan.nodes}) are terminated"
    of_job = f"  job:    {job}\n" if job else ""
    if want == "awake":
        say(
            f"{plan.cluster_name} wakes up: {plan.nodes} x {plan.instance_type}, {plan.capacity}.\n"
            f"  awake:  {estimated.running_hour} per hour\n"
            f"  end:    {minute_text(target.ends) if target.ends else pilot_end_text(plan)}\n"
        )
    elif target.state.asleep is None:
        say(
            f"{plan.cluster_name} goes to sleep: {nodes}, and the data on their disks is lost. "
            "Its app has no SleepSwitch, so everything else stays and is billed.\n"
            f"  awake:  {estimated.running_hour} per hour, plus everything else in its stacks\n{of_job}"
        )
    else:
        say(
            f"{plan.cluster_name} goes to sleep: {nodes}, and the data on their disks is lost. "
            "Endpoints and NAT gateways of its SleepSwitch are deleted. Cache and file systems stay.\n"
            f"  awake:  {estimated.running_hour} per hour\n"
            f"  asleep: {estimated.asleep_month} per month, plus storage\n{of_job}"
        )


def _give_notice(target: _Target, grace: timedelta, job: Callable[[], bool | None]) -> None:
    reason = f"the cluster {target.plan.cluster_name} goes to sleep"
    notice = NotifyNodes(
        target.account, target.stack, target.state.groups, kind=_NOTICE, reason=reason, grace=grace, has_job=job
    )
    try:
        with interrupt_message(_NOTIFIED), ProgressReporter() as reporter:
            run_step(notice, _reporting(reporter), time.sleep)
    except KeyboardInterrupt:
        with finish_before_exit():
            is_withdrawn = notice.withdraw()
        with interrupt_message(_WITHDRAWN if is_withdrawn else _NOTIFIED):
            raise


def _end_nodes(target: _Target, *, because: str = "") -> str:
    """End the nodes with Auto Scaling only, for a stack that cannot be updated or has no SleepSwitch."""
    with interrupt_message(_ENDING), ProgressReporter() as reporter:
        empty = EmptyGroups(target.account, target.state.groups, for_good=False)
        outcome = run_step(empty, _reporting(reporter), time.sleep)
    _forget_notice(target)
    name, state = target.plan.cluster_name, target.state
    if outcome.state != "done":
        raise CliError(f"The nodes of {name} are not all terminated: {outcome.message}.", ExitCode.NOT_READY)
    if state.asleep and state.status in STABLE_STATUSES:
        return _asleep(target)
    if state.asleep is None and not because:
        return f"{name} has no nodes. `trn wake` restores them."
    launches = ", whose deployment may launch nodes again" if state.status == "UPDATE_IN_PROGRESS" else ""
    why = because or f"{target.stack} is in {state.status}{launches}"
    message = (
        f"The nodes of {name} are terminated. Everything else stays, and endpoints or NAT gateways are billed: {why}"
    )
    message = f"{message}\n" if "\n" in why else f"{message.removesuffix('.')}. "
    raise CliError(f"{message}Run `trn sleep` again once the stack can be updated.", ExitCode.NOT_READY)


def _launch(target: _Target) -> str:
    """Launch the nodes with Auto Scaling only, and wait until all are verified."""
    _forget_notice(target)
    with interrupt_message(_LAUNCHED):
        for group in target.state.groups:
            try:
                target.account.size_group(group, target.plan.nodes)
            except RequestRefusedError as error:
                message = f"The nodes of {target.plan.cluster_name} could not be launched: {error}"
                raise CliError(message, ExitCode.NOT_READY) from error
        return _await_nodes(target)


def _await_nodes(target: _Target) -> str:
    """Wait until all nodes are verified. Raises CliError if they are not verified within trn:node_timeout_minutes."""
    plan = target.plan
    nodes, deadline = AwsNodes(plan.region), time.monotonic() + 60 * plan.node.timeout_minutes
    replacements = plan.node.replacements if plan.node.recovery else 0
    polling, report = Polling(time.sleep), None
    with interrupt_message(_LAUNCHED), ProgressReporter() as reporter:
        while True:
            with polling.poll(lambda message: reporter.report("nodes", message)):
                deployed = nodes.nodes(target.stack)
                report = nodes_report(deployed, replacements=replacements) if deployed else None
                reporter.report("nodes", report.verdict.reason if report else "none yet")
            if (report and report.is_final) or time.monotonic() > deadline:
                break
            polling.wait()
    if report and report.verdict.state == "ready":
        return f"{plan.cluster_name} is awake: {report.verdict.reason}."
    reason = report.verdict.reason if report else f"{target.stack} does not exist"
    late = (
        "" if report and report.is_final else f" after {plan.node.timeout_minutes} minutes (trn:node_timeout_minutes)"
    )
    raise CliError(f"The nodes of {plan.cluster_name} are not all verified{late}: {reason}.", ExitCode.NOT_READY)


def _put_to_sleep(target: _Target) -> str:
    try:
        events = _updated(target, asleep=True)
    except RequestRefusedError as error:
        return _end_nodes(target, because=str(error))
    _forget_notice(target)
    failure = deployment_failure(events)
    if failure is not None:
        return _end_nodes(target, because=f"{target.stack} could not be updated:\n{failure.text}")
    return _asleep(target)


def _wake(target: _Target) -> str:
    _forget_notice(target)
    name = target.plan.cluster_name
    try:
        events = _updated(target, asleep=False)
    except RequestRefusedError as error:
        # CloudFormation resolves the image's SSM parameter at every update.
        gone = f". {_IMAGE_IS_GONE}" if "from parameter store" in str(error) else ""
        raise CliError(f"Nothing was changed: {str(error).removesuffix('.')}{gone}", ExitCode.NOT_READY) from error
    failure = deployment_failure(events)
    if failure is not None:
        raise CliError(f"{name} could not be woken:\n{failure.text}", ExitCode.NOT_READY)
    readiness = target.account.readiness(target.stack)
    if readiness is None:  # the stack of another app may have no such outputs
        return _await_nodes(target)
    # Before a Capacity Block starts, having no nodes is correct.
    if readiness.verified_nodes or target.plan.capacity == CAPACITY_BLOCK:
        return f"{name} is awake: {readiness.summary}."
    raise CliError(f"{name} is awake: {readiness.summary}.", ExitCode.NOT_READY)


def _updated(target: _Target, *, asleep: bool) -> Sequence[StackEvent]:
    """The events of an update that changes only the parameter `Asleep`.

    Raises:
        RequestRefusedError: The update did not begin.
        UnavailableError: It is unknown whether the update began, or how it ended.
    """
    account, stack = target.account, target.stack
    before = account.last_event(stack)
    change = "terminated" if asleep else "launched, and billed"
    message = (
        f"Interrupted: CloudFormation continues to update {stack}. Its nodes are {change}. `trn status` shows them."
    )
    with interrupt_message(message):
        try:
            account.set_asleep(stack, asleep=asleep)
        except RequestRefusedError:
            # A request whose response is late is repeated, and the repetition is refused because of its own update.
            changed = account.sleep_state(stack)
            if changed is None or changed.asleep != asleep:
                raise
        with ProgressReporter() as reporter:

            def on_progress(message: str) -> None:
                reporter.report(stack, message)

            return follow(account, stack, after=before, on_progress=on_progress, pause=time.sleep)


def _asleep(target: _Target) -> str:
    return f"{target.plan.cluster_name} is asleep. `trn wake` restores its nodes."


def _forget_notice(target: _Target) -> None:
    """Withdraw the notice, so that the next nodes do not receive it."""
    with suppress(UnavailableError, RequestRefusedError):
        target.account.withdraw(target.stack, _NOTICE)


def _reporting(reporter: ProgressReporter) -> Callable[[str, StepProgress], None]:
    def on_progress(step: str, progress: StepProgress) -> None:
        reporter.report(step, progress.message, ended=progress.state in ("done", "stuck"))

    return on_progress
