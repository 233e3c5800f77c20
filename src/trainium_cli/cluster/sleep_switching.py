"""Putting a cluster to sleep and waking it, as `trn sleep` and `trn wake` do."""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import click

from trainium_cli.cluster.running_job import running_job_sentence
from trainium_cli.cluster_selection import others_sentence, read_cluster_plan, stack_of_cluster
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import finishing, going_on
from trainium_cli.plan.plan_report import pilot_end_text
from trainium_cli.plan_options import IRRELEVANT_LATER
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import say
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import estimate
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import nodes_report
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import minute_text, read_pilot_end
from trainium_core.polling import Polling
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.sleep.account import SleepAccount, SleepState
from trainium_core.sleep.aws_account import AwsSleepControl
from trainium_core.stacks.deployment_failure import deployment_failure
from trainium_core.stacks.events import StackEvent
from trainium_core.stacks.following import follow
from trainium_core.teardown.before_stacks import EmptyGroups
from trainium_core.teardown.notice import NotifyNodes
from trainium_core.teardown.run import end
from trainium_core.teardown.step import Progress
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.fleet_verdict import is_ready_with_nodes

_NOTICE = "sleep"
_HOST_GOES = (
    "The host of `trn precompile` is there, and ends as well: `trn precompile` can start it while a cluster sleeps.\n"
)
_TOLD = "Interrupted: nothing was changed, and the nodes run on, and are billed; they may still expect their end."
_ENDING = (
    "Interrupted: Auto Scaling ends the nodes by itself, and what else there is runs on, and is billed. `trn status` "
    "shows how far it is."
)
_LAUNCHED = "Interrupted: the nodes are launched, and billed. `trn nodes` shows them."
_STEADY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")


@going_on("Interrupted: nothing was changed.")
def switch(
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    stack: str | None,
    *,
    asleep: bool,
    yes: bool,
    grace: timedelta = timedelta(),
) -> NoReturn:
    """Put the cluster to sleep, or wake it; ends the command. grace: how long nodes have notice of their sleep."""
    plan = read_cluster_plan(cdk_json, overrides, as_json=False, ignoring=IRRELEVANT_LATER)
    stack = stack_of_cluster(plan, stack)
    account = AwsSleepControl(plan.region)
    try:
        with waiting(f"Asking AWS for {stack} in {plan.region} ..."):
            state = account.sleep_state(stack)
        there = state is not None and _has_nodes(account, state.groups)
        by_group = state is not None and bool(state.groups) and _goes_by_group(plan, state, asleep=asleep, there=there)
        _refuse(plan, stack, state, nodes_can_end=(asleep and there) or by_group)
        assert state is not None
        has_host = asleep and _has_nodes(account, state.hosts)
        if has_host and not there and (by_group or state.asleep):
            say(_HOST_GOES)
            if not yes and not click.confirm("End it?"):
                _end(ExitCode.NOT_READY, "Nothing was changed.")
            _end_host(account, state)
        if by_group and asleep != there:
            _end(ExitCode.OK, f"{plan.cluster_name} {'has no nodes' if asleep else 'has its nodes'} already.")
        if state.asleep == asleep and not (asleep and there) and not by_group:
            _end_already(plan, asleep=asleep, without_nodes=bool(state.groups) and not there)
        if not asleep:
            _refuse_after_the_end(plan, state)
        _announce_change(plan, stack, state, asleep=asleep, by_group=by_group)
        if has_host:
            say(_HOST_GOES)
        if not yes and not click.confirm("Put it to sleep?" if asleep else "Wake it?"):
            _end(ExitCode.NOT_READY, "Nothing was changed.")
        if has_host:
            _end_host(account, state)
        if asleep:
            _give_notice(account, plan, stack, state.groups, grace)
        if by_group and not asleep:
            _launch(account, plan, stack, state.groups)
        if by_group or state.status not in _STEADY or state.asleep == asleep:
            _end_nodes(account, plan, stack, state)
        _update(account, plan, stack, state, asleep=asleep)
    except UnavailableError as error:
        _end(ExitCode.UNKNOWN, f"Could not tell: {error}")
    except RequestRefusedError as error:
        _end(ExitCode.NOT_READY, f"Nothing was changed: {error}")


def _end_host(account: SleepAccount, state: SleepState) -> None:
    """Without a wait: its job's record says by itself that it was ended."""
    for group in state.hosts:
        account.empty_group(group, for_good=False)


def _goes_by_group(plan: Plan, state: SleepState, *, asleep: bool, there: bool) -> bool:
    """Whether nodes go or come by Auto Scaling alone: the app knows no sleep, or a stack that is awake lost its nodes,
    such as to its clock since nobody used them. Those of a Capacity Block come by its clock."""
    lost = state.asleep is False and not asleep and not there and plan.capacity != CAPACITY_BLOCK
    return state.asleep is None or lost


def _has_nodes(account: SleepAccount, groups: Sequence[str]) -> bool:
    """Whether there are nodes, or are to be."""
    return any(group.wanted or sum(group.instances.values()) for group in account.node_groups(groups))


def _refuse(plan: Plan, stack: str, state: SleepState | None, *, nodes_can_end: bool) -> None:
    """End the command for a stack that cannot be updated now, or not at all, and has no nodes that can be ended."""
    message = None
    if state is None:
        message = f"There is no stack {stack} in {plan.region}: `trn deploy` makes it.{others_sentence(plan)}"
    elif state.cluster != plan.cluster_name:
        message = f"The stack {stack} is one of {state.cluster or 'no cluster'}, and not of {plan.cluster_name}."
    elif nodes_can_end:
        return
    elif state.asleep is None:
        message = f"{stack} was deployed by an older version and knows no sleep: run `trn deploy` once."
    elif state.status not in _STEADY:
        message = f"{stack} is in {state.status}: wait until that has ended, or see `trn preflight`."
    if message is not None:
        _end(ExitCode.NOT_READY, message)


def _end_already(plan: Plan, *, asleep: bool, without_nodes: bool) -> NoReturn:
    if not asleep and without_nodes:
        message = f"{plan.cluster_name} is awake: its clock launches the nodes in the time of its Capacity Block."
        _end(ExitCode.NOT_READY, message)
    _end(ExitCode.OK, f"{plan.cluster_name} is {'asleep' if asleep else 'awake'} already.")


def _refuse_after_the_end(plan: Plan, state: SleepState) -> None:
    ends = _end_of_the_pilot(plan, state)
    if ends and ends <= datetime.now(UTC):
        message = (
            f"The pilot ended at {minute_text(ends)}: no nodes would come. `trn extend 8h` moves the end; then wake it."
        )
        _end(ExitCode.NOT_READY, message)


def _end_of_the_pilot(plan: Plan, state: SleepState) -> datetime | None:
    return read_pilot_end(plan.pilot.ends).instant(state.created) if plan.pilot.ends and state.created else None


def _announce_change(plan: Plan, stack: str, state: SleepState, *, asleep: bool, by_group: bool) -> None:
    with waiting("Asking AWS for prices ..."):
        estimated = estimate(plan, aws=AwsPrices(plan.region))
        job = running_job_sentence(plan, stack) if asleep else None
    nodes = "its node ends" if plan.nodes == 1 else f"its {plan.nodes} nodes end"
    of_job = f"  job:    {job}\n" if job else ""
    if asleep and by_group:
        say(
            f"{plan.cluster_name} goes to sleep: {nodes}, and with them what is on their disks. "
            "Its app knows no sleep (SleepSwitch), so what else it has stays as it is, and is billed.\n"
            f"  awake:  {estimated.running_hour} per hour, and what else is in its stacks\n{of_job}"
        )
    elif asleep:
        say(
            f"{plan.cluster_name} goes to sleep: {nodes}, and with them what is on their disks; "
            "so do its paid ways out of the network. Cache and file systems stay.\n"
            f"  awake:  {estimated.running_hour} per hour\n"
            f"  asleep: {estimated.asleep_month} per month, and what is stored\n{of_job}"
        )
    else:
        ends = _end_of_the_pilot(plan, state)
        say(
            f"{plan.cluster_name} wakes up: {plan.nodes} x {plan.instance_type}, {plan.capacity}.\n"
            f"  awake:  {estimated.running_hour} per hour\n"
            f"  end:    {minute_text(ends) if ends else pilot_end_text(plan)}\n"
        )


def _give_notice(account: SleepAccount, plan: Plan, stack: str, groups: Sequence[str], grace: timedelta) -> None:
    reason = f"the cluster {plan.cluster_name} goes to sleep"
    notice = NotifyNodes(account, stack, groups, kind=_NOTICE, reason=reason, grace=grace)
    try:
        with going_on(_TOLD), ProgressReporter() as reporter:

            def on_progress(step: str, progress: Progress) -> None:
                reporter.report(step, progress.message, ended=progress.state in ("done", "stuck"))

            end(notice, on_progress, time.sleep)
    except KeyboardInterrupt:
        with finishing():
            notice.withdraw()
        _end(ExitCode.INTERRUPTED, "\nInterrupted: nothing was changed, and the nodes are notified of that.")


def _end_nodes(account: SleepAccount, plan: Plan, stack: str, state: SleepState, *, because: str = "") -> NoReturn:
    """End the nodes by Auto Scaling alone, of a stack that is not, or cannot be, updated; ends the command."""
    with going_on(_ENDING), ProgressReporter() as reporter:

        def on_progress(step: str, progress: Progress) -> None:
            reporter.report(step, progress.message, ended=progress.state in ("done", "stuck"))

        outcome = end(EmptyGroups(account, state.groups, for_good=False), on_progress, time.sleep)
    _forget_notice(account, stack)
    if outcome.state != "done":
        _end(ExitCode.NOT_READY, f"The nodes of {plan.cluster_name} have not all ended: {outcome.message}.")
    if state.asleep and state.status in _STEADY:
        _end(ExitCode.OK, f"{plan.cluster_name} is asleep. `trn wake` brings its nodes back.")
    if state.asleep is None and not because:
        _end(
            ExitCode.OK, f"{plan.cluster_name} has no nodes. `trn wake`, or a deployment of its app, brings them back."
        )
    why = because or f"{stack} is in {state.status}"
    message = f"The nodes of {plan.cluster_name} have ended. The rest of it is awake, and paid ways out of its network"
    _end(ExitCode.NOT_READY, f"{message} are billed: {why}. Run `trn sleep` again once the stack can be updated.")


def _launch(account: SleepAccount, plan: Plan, stack: str, groups: Sequence[str]) -> NoReturn:
    """Bring the nodes back by Auto Scaling alone; ends the command when all are proven."""
    _forget_notice(account, stack)
    with going_on(_LAUNCHED):
        for group in groups:
            account.size_group(group, plan.nodes)
        _await_nodes(plan, stack)


def _await_nodes(plan: Plan, stack: str) -> NoReturn:
    """End the command when all nodes are proven, or cannot be."""
    nodes, deadline = AwsNodes(plan.region), time.monotonic() + 60 * plan.node.timeout_minutes
    replacements = plan.node.replacements if plan.node.recovery else 0
    polling, report = Polling(time.sleep), None
    try:
        with ProgressReporter() as reporter:
            while True:
                with polling.poll(lambda message: reporter.report("nodes", message)):
                    deployed = nodes.nodes(stack)
                    report = nodes_report(deployed, replacements=replacements) if deployed else None
                    reporter.report("nodes", report.verdict.reason if report else "none yet")
                if (report and report.final) or time.monotonic() > deadline:
                    break
                polling.wait()
    except KeyboardInterrupt:
        _end(ExitCode.INTERRUPTED, f"\n{_LAUNCHED}")
    if report and report.verdict.state == "ready":
        _end(ExitCode.OK, f"{plan.cluster_name} is awake: {report.verdict.reason}.")
    _end(ExitCode.NOT_READY, f"{plan.cluster_name} has no proven nodes: {report.verdict.reason if report else 'none'}.")


def _update(account: SleepAccount, plan: Plan, stack: str, state: SleepState, *, asleep: bool) -> NoReturn:
    before = account.last_event(stack)
    if not asleep:
        _forget_notice(account, stack)
    goes_on = (
        f"Interrupted: CloudFormation goes on with {stack} by itself, and its nodes "
        f"{'end' if asleep else 'are launched, and billed'}. `trn status` shows how far it is."
    )
    try:
        with going_on(goes_on):
            account.set_asleep(stack, asleep=asleep)
            events = _followed(account, stack, before)
    except RequestRefusedError as error:
        if asleep:
            _end_nodes(account, plan, stack, state, because=str(error))
        raise
    except KeyboardInterrupt:
        _end(ExitCode.INTERRUPTED, f"\n{goes_on}")
    if asleep:
        _forget_notice(account, stack)
    failure = deployment_failure(events)
    if failure is None:
        if asleep:
            _end(ExitCode.OK, f"{plan.cluster_name} is asleep. `trn wake` brings its nodes back.")
        fleet = account.fleet(stack)
        if fleet is None:  # the app shows no outputs of the cluster
            _await_nodes(plan, stack)
        # Before a Capacity Block begins there are none, which is as it should be.
        as_wanted = is_ready_with_nodes(fleet) or plan.capacity == CAPACITY_BLOCK
        _end(ExitCode.OK if as_wanted else ExitCode.NOT_READY, f"{plan.cluster_name} is awake: {fleet}.")
    if asleep:
        _end_nodes(account, plan, stack, state, because=f"it could not be put to sleep:\n{failure.text}\n")
    _end(ExitCode.NOT_READY, f"{plan.cluster_name} could not be woken:\n{failure.text}")


def _forget_notice(account: SleepAccount, stack: str) -> None:
    """It was for the nodes that have gone, or have stayed after all, and not for the next."""
    with suppress(UnavailableError, RequestRefusedError):
        account.withdraw(stack, _NOTICE)


def _followed(account: SleepAccount, stack: str, before: str | None) -> Sequence[StackEvent]:
    with ProgressReporter() as reporter:

        def on_progress(message: str) -> None:
            reporter.report(stack, message)

        return follow(account, stack, after=before, on_progress=on_progress, pause=time.sleep)


def _end(code: ExitCode, message: str) -> NoReturn:
    if code is ExitCode.OK:
        say(message)
    else:
        click.echo(message, err=True)
    raise click.exceptions.Exit(code)
