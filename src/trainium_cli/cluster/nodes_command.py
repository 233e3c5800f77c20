"""`trn nodes`: every node of the deployed cluster, and its problems."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import click
from rich.console import Group
from rich.text import Text

from trainium_cli.cluster_choice import cluster_stack_name, missing_stack, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation, pass_invocation, plan_options, stack_option
from trainium_cli.layout import Table
from trainium_cli.quantities import number_text, percent
from trainium_cli.terminal import console, echo, print_json, table
from trainium_cli.waiting import waiting
from trainium_core.explanations.known_errors import KnownError, known_error
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import (
    NodesNotCreatedError,
    NodesReport,
    NodeStatus,
    NoFleetError,
    nodes_report,
    report_as_json,
)
from trainium_core.plan import Plan
from trainium_core.problems import nearest
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.stacks.deployment_failure import deployment_failure
from trainium_wire.metric_sample import NOT_MEASURED, RecentMetrics
from trainium_wire.node_record import CheckRecord

_PAUSE_S = 5


@click.command()
@click.option(
    "--node",
    "instance_id",
    metavar="ID",
    help="Show every check of one node, such as i-0123456789abcdef0.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Wait until all nodes are verified or cannot be verified any more, or the cluster is asleep. With --json, "
    "print only the final state.",
)
@stack_option
@plan_options
@pass_invocation
def nodes(invocation: Invocation, stack: str | None, instance_id: str | None, watch: bool) -> ExitCode:
    """Show every node of the deployed cluster and its problems.

    Judges the nodes by their records, with the same rules as a deployment; nodes of an EKS cluster by their taint and
    annotations, which it reads with your kubectl. The plan determines the region and the number of replacements.

    Exit code 0: every node is verified and reaches the others. 1: otherwise, also if asleep or not deployed. 3:
    unknown.
    """
    if watch and instance_id:
        raise click.UsageError("pass --watch or --node, not both")
    plan = read_cluster_plan(invocation)
    stack = cluster_stack_name(invocation, plan, stack)
    account = AwsNodes(plan.region, clients=invocation.clients)

    def read() -> NodesReport:
        return _report(invocation, account, plan, stack)

    with (
        interrupt_message("Interrupted: the nodes keep running, and are billed."),
        waiting(f"Asking AWS for the nodes of {stack}") as change,
    ):
        report = _watch(read, stack, change, verbose=not invocation.as_json) if watch else read()
    _show(report, instance_id, as_json=invocation.as_json, stack=stack)
    return ExitCode.OK if report.verdict.state == "ready" else ExitCode.NOT_READY


def _report(invocation: Invocation, account: AwsNodes, plan: Plan, stack: str) -> NodesReport:
    """The report on the nodes of the stack.

    Raises:
        CliError: The stack does not exist, or has no nodes because its deployment or deletion failed.
        NodesNotCreatedError: The nodes are not created yet, or no longer exist.
        NoFleetError: The stack has no nodes.
        UnavailableError: AWS could not be read.
    """
    try:
        deployed = account.nodes(stack, with_metrics=True)
    except NoFleetError:
        outside = account.outside_nodes(stack)
        if outside is None:
            raise
        return outside
    except NodesNotCreatedError as error:
        if error.status.endswith("_IN_PROGRESS") and "ROLLBACK" not in error.status:
            raise
        failure = deployment_failure(AwsStackEvents(plan.region).stack_events(stack, after=None))
        if failure is None:
            raise
        what = "deletion" if error.status.startswith("DELETE_") else "deployment"
        message = f"{stack} has no nodes, because its {what} failed:\n{failure.text}"
        raise CliError(message, ExitCode.NOT_READY) from error
    if deployed is None:
        raise missing_stack(invocation, plan, stack)
    return nodes_report(deployed, replacements=plan.node.replacements if plan.node.recovery else 0)


def _watch(read: Callable[[], NodesReport], stack: str, change: Callable[[str], None], *, verbose: bool) -> NodesReport:
    """Read the report until it is final, and show every change in the spinner, or, without a terminal, as a line."""
    shown = ""
    while True:
        report = None
        try:
            report = read()
            message = f"{report.verdict.state}: {report.verdict.reason}"
        except NodesNotCreatedError as error:
            if error.status != "CREATE_IN_PROGRESS":
                raise
            message = f"waiting: {stack} is being created, its nodes last"
        if message != shown:
            shown = message
            change(message)
            if verbose and not sys.stderr.isatty():
                echo(message, err=True)
        if report and report.is_final:
            return report
        time.sleep(_PAUSE_S)


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
        _explain(report.nodes)
    else:
        node = next(node for node in report.nodes if node.instance_id == instance_id)
        console().print(checks_table(node))
        _explain([node])


def _explain(shown: Sequence[NodeStatus]) -> None:
    """Print the explanation of `trn explain` for failed nodes, once per error."""
    found: dict[str, tuple[KnownError, list[str]]] = {}
    for node in shown:
        known = known_error(f"node {node.instance_id}: {node.problem}") if node.state == "failed" else None
        if known:
            found.setdefault(known.name, (known, []))[1].append(node.instance_id)
    for error, nodes in found.values():
        console().print(f"\nCause: {error.cause} ({', '.join(nodes)}).\nFix:   {error.fix}.")


_STYLE = {"verified": "green", "failed": "red", "draining": "yellow", "leaving": "yellow"}
_SHOWN_GONE = 10


def nodes_table(report: NodesReport) -> Group:
    """One row for each node, and the verdict."""
    measured = any(node.metrics != NOT_MEASURED for node in report.nodes)
    rows = [
        (
            node.instance_id,
            node.zone,
            node.address,
            Text(node.state, style=_STYLE.get(node.state, "")),
            _moment(node.since),
            _moment(node.launched),
            *([*_metrics(node.metrics)] if measured else []),
            node.problem,
        )
        for node in report.nodes
    ]
    metrics = ("Busy", "Memory", "Errors") if measured else ()
    columns = ("Instance", "Zone", "Address", "State", "Since", "Launched", *metrics, "Problem")
    drawn: Sequence[Table | Text] = [table(columns, rows, wrapping=("Problem",)), Text("")] if rows else []
    return Group(*[*drawn, *_gone(report), Text(f"{report.verdict.state}: {report.verdict.reason}")])


def _metrics(metrics: RecentMetrics) -> tuple[str, str, str]:
    return percent(metrics.core_utilization), percent(metrics.memory_utilization), number_text(metrics.errors)


def _gone(report: NodesReport) -> Sequence[Table | Text]:
    """The failed nodes that left the cluster, with the reasons in their records."""
    if not report.gone:
        return []
    rows = [(node.instance_id, _moment(node.since), node.reason) for node in report.gone[:_SHOWN_GONE]]
    more = len(report.gone) - len(rows)
    not_shown = f"; not shown: {more}" if more else ""
    title = Text(f"Former failed nodes (replaced in the last 24 hours: {report.replaced}{not_shown})")
    return [title, table(("Instance", "Failed", "What was wrong"), rows, wrapping=("What was wrong",)), Text("")]


def checks_table(node: NodeStatus) -> Group:
    """Every check of one node."""
    rows = [(check.name, _outcome(check), check.expected, check.found) for check in node.checks]
    where = ", ".join(part for part in (node.zone, node.address) if part)
    title = f"{node.instance_id} ({where}) is {node.state}{f' since {_moment(node.since)}' if node.since else ''}"
    problem = [Text(node.problem)] if node.problem else []
    drawn = table(("Check", "Outcome", "Expected", "Found"), rows, wrapping=("Expected", "Found"))
    return Group(*[Text(title, style="bold"), *problem, *([Text(""), drawn] if rows else [])])


def _outcome(check: CheckRecord) -> Text:
    if not check.ok:
        return Text("fail", style="red")
    return Text("warn", style="yellow") if check.warning else Text("pass", style="green")


def _moment(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%m-%d %H:%M:%SZ}" if moment else "-"
