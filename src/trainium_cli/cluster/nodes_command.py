"""`trn nodes`: every node of the deployed cluster, and what is wrong with one that is not proven."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from trainium_cli.cluster.nodes_report import checks_table, nodes_table
from trainium_cli.cluster_selection import others_sentence, read_cluster_plan, stack_of_cluster, stack_option
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import going_on
from trainium_cli.plan_options import plan_options
from trainium_cli.terminal import console, print_json
from trainium_cli.waiting import waiting
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.deployed_nodes import Nodes, NodesNotMadeError
from trainium_core.nodes.report import NodesReport, nodes_report, report_as_json
from trainium_core.plan import Plan
from trainium_core.problems import nearest
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.stacks.deployment_failure import deployment_failure
from trainium_runtime.errors import UnavailableError

_PAUSE_S = 5
_BEING_MADE = "CREATE_IN_PROGRESS"


@click.command()
@plan_options
@stack_option
@click.option(
    "--node",
    "instance_id",
    metavar="ID",
    help="Show every check of one node, such as i-0123456789abcdef0.",
)
@click.option(
    "--watch", is_flag=True, help="Go on until all are proven, or one is lost; with --json print the end only."
)
def nodes(
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    stack: str | None,
    instance_id: str | None,
    watch: bool,
) -> None:
    """Show every node of the deployed cluster, and what is wrong.

    By what the nodes wrote about themselves, and by the rules of the fleet gate. The region and the number of
    replacements are the plan's.

    Exit code 0: every node is proven and has reached the others. 1: not so, or not deployed. 3: could not tell.
    """
    if watch and instance_id:
        raise click.UsageError("give --watch or --node, not both")
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json)
    stack = stack_of_cluster(plan, stack)
    account = AwsNodes(plan.region)
    try:
        if watch:
            with going_on("Interrupted: the watching alone; the nodes go on, and are billed."):
                if not as_json and sys.stdout.isatty():
                    report = _watch_on_screen(account, plan, stack)
                else:
                    with waiting(f"Asking AWS for the nodes of {stack}"):
                        report = _watch(account, plan, stack, verbose=not as_json)
                    _show(report, instance_id, as_json=as_json, stack=stack)
        else:
            with waiting(f"Asking AWS for the nodes of {stack}"):
                report = _report(account, plan, stack)
            _show(report, instance_id, as_json=as_json, stack=stack)
    except UnavailableError as error:
        _end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    except (FailedError, NotDeployedError) as error:
        _end(ExitCode.NOT_READY, str(error), as_json=as_json)
    raise click.exceptions.Exit(ExitCode.OK if report.verdict.state == "ready" else ExitCode.NOT_READY)


class NotDeployedError(Exception):
    """There is no such stack; the message is for the user."""


class FailedError(Exception):
    """Its deployment failed, and the group of its nodes is gone; the message is for the user."""


def _report(account: Nodes, plan: Plan, stack: str) -> NodesReport:
    try:
        deployed = account.nodes(stack)
    except NodesNotMadeError as error:
        if error.status.endswith("_IN_PROGRESS") and "ROLLBACK" not in error.status:
            raise
        failure = deployment_failure(AwsStackEvents(plan.region).stack_events(stack, after=None))
        if failure is None:
            raise
        raise FailedError(f"{stack} has no nodes, since its deployment failed:\n{failure.text}") from error
    if deployed is None:
        message = f"there is no stack {stack} in {plan.region}: `trn deploy` makes it."
        raise NotDeployedError(f"{message}{others_sentence(plan)}")
    return nodes_report(deployed, replacements=plan.node.replacements if plan.node.recovery else 0)


def _report_once_made(account: Nodes, plan: Plan, stack: str, on_wait: Callable[[str], None]) -> NodesReport:
    """The first report; of a stack that is being made, once the group of its nodes is there."""
    while True:
        try:
            return _report(account, plan, stack)
        except NodesNotMadeError as error:
            if error.status != _BEING_MADE:
                raise
            on_wait(f"{stack} is being made: its nodes come last")
        time.sleep(_PAUSE_S)


def _watch(account: Nodes, plan: Plan, stack: str, *, verbose: bool) -> NodesReport:
    """Look until the end. verbose: tell on standard error whenever something changed."""
    message = ""

    def on_wait(waiting_for: str) -> None:
        nonlocal message
        if verbose and waiting_for != message:
            message = waiting_for
            click.echo(f"waiting: {waiting_for}", err=True)

    while True:
        report = _report_once_made(account, plan, stack, on_wait)
        if verbose and report.verdict.reason != message:
            message = report.verdict.reason
            click.echo(f"{report.verdict.state}: {message}", err=True)
        if report.final:
            return report
        time.sleep(_PAUSE_S)


def _watch_on_screen(account: Nodes, plan: Plan, stack: str) -> NodesReport:
    with waiting(f"Asking AWS for the nodes of {stack}") as change:
        report = _report_once_made(account, plan, stack, change)
    from rich.live import Live
    from rich.text import Text

    def shown() -> Text:
        return Text.from_ansi(console().rendered(nodes_table(report)))

    with Live(shown(), auto_refresh=False) as screen:
        while not report.final:
            time.sleep(_PAUSE_S)
            report = _report(account, plan, stack)
            screen.update(shown(), refresh=True)
    return report


def _show(report: NodesReport, instance_id: str | None, *, as_json: bool, stack: str) -> None:
    if instance_id is not None:
        ids = [node.instance_id for node in report.nodes]
        if instance_id not in ids:
            close = nearest(instance_id, ids)
            hint = f"; nearest: {close}" if close else ""
            raise click.UsageError(f"{stack} has no node {instance_id!r}{hint}; it has: {', '.join(ids) or 'none'}")
    if as_json:
        print_json({"stack": stack, **report_as_json(report, only=instance_id)})
    elif instance_id is None:
        console().print(nodes_table(report))
    else:
        console().print(checks_table(next(node for node in report.nodes if node.instance_id == instance_id)))


def _end(code: ExitCode, message: str, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": message})
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)
