"""`trn audit`: what is left of a cluster in the account, and its cost."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from trainium_cli.cluster.audit_report import HEADINGS, audit_as_json, audit_as_page, resources_table, verdict_line
from trainium_cli.cluster_choice import cluster_stack_names, read_tagged_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import (
    Invocation,
    pass_invocation,
    plan_options,
    stacks_option,
)
from trainium_cli.terminal import console, echo, print_json
from trainium_cli.waiting import waiting
from trainium_core.audit.aws_account import AwsAuditedAccount
from trainium_core.audit.outcome import Audit, Verdict
from trainium_core.audit.runner import audit as run_audit
from trainium_core.clusters.cluster import ClusterStacks
from trainium_core.plan import Plan

_EXIT_CODES: dict[Verdict, ExitCode] = {
    "nothing left": ExitCode.OK,
    "something left": ExitCode.NOT_READY,
    "unknown": ExitCode.UNKNOWN,
}


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True, writable=True),
    default=Path(),
    help="Where to write the report. Default: the working directory.",
)
@stacks_option
@plan_options
@pass_invocation
def audit(invocation: Invocation, stacks: tuple[str, ...], folder: Path) -> ExitCode:
    """Show what is left of the cluster, and its cost.

    Read-only. Finds resources by the tag trn:cluster, by the stacks that created them (including stacks deleted in the
    last 90 days), and by names that begin with a stack's name; parts of a found resource count too. Writes
    audit-CLUSTER-TIME.json and .md.

    Exit code 0: nothing is left, and everything was read. 1: something is left. 3: unknown, or nothing is left but the
    report could not be written.
    """
    try:
        plan = read_tagged_plan(invocation, may_be_gone=True)
    except CliError as error:
        if error.exit_code != ExitCode.NOT_READY:
            raise
        # 1 would say that something is left.
        raise CliError(error.message, ExitCode.UNKNOWN) from error
    names = cluster_stack_names(invocation, plan, stacks)
    return audit_cluster(invocation, plan, names, folder, known=invocation.cluster_stacks.get(plan.region))


def audit_cluster(
    invocation: Invocation, plan: Plan, stacks: Sequence[str], folder: Path, *, known: ClusterStacks | None = None
) -> ExitCode:
    """Show what is left of a plan's cluster, and write the report into the folder.

    Args:
        invocation: The shared options.
        plan: The plan.
        stacks: Names of the cluster's stacks.
        folder: Where to write the report.
        known: The stacks of the region, if nothing has changed since they were read.

    Returns:
        The exit code of `trn audit`.
    """
    found = _read(invocation, plan, stacks, known)
    document = audit_as_json(found)
    code = _EXIT_CODES[found.verdict]
    try:
        report = str(_write(found, document, folder))
    except OSError as error:
        report = None
        echo(f"The report could not be written to {folder}: {error.strerror}", err=True)
        code = code or ExitCode.UNKNOWN
    if invocation.as_json:
        print_json({**document, "report": report})
    else:
        _show(found, report)
    return code


def _read(invocation: Invocation, plan: Plan, stacks: Sequence[str], known: ClusterStacks | None) -> Audit:
    message = f"Looking for {plan.cluster_name} in {plan.region}"
    with waiting(message) as change:
        return run_audit(
            plan,
            AwsAuditedAccount(plan.region, clients=invocation.clients, known=known),
            stack_names=stacks,
            now=datetime.now(UTC),
            on_progress=lambda done, total: change(f"{message}: {done} of {total} lists read"),
        )


def _write(found: Audit, document: object, folder: Path) -> Path:
    name = f"audit-{found.cluster}-{found.time.strftime('%Y%m%dT%H%M%SZ')}"
    (folder / f"{name}.json").write_text(json.dumps(document, default=str, indent=2) + "\n", encoding="utf-8")
    page = folder / f"{name}.md"
    page.write_text(audit_as_page(found), encoding="utf-8")
    return page


def _show(found: Audit, report: str | None) -> None:
    out = console()
    for group, heading in HEADINGS.items():
        if found.of(group):
            out.print(f"{heading}", style="bold")
            out.print(resources_table(found.of(group)))
            out.print()
    if found.not_read:
        out.print("Could not be read", style="bold")
        for unread in found.not_read:
            out.print(f"  {unread.what}: {unread.reason}")
        out.print()
    for reason in found.prices_unavailable:
        out.print(f"AWS prices are unavailable: {reason}")
    elsewhere = f", answered by {found.identity.endpoint}, not by AWS" if found.identity.endpoint else ""
    out.print(f"Account {found.identity.account}{elsewhere}." + (f" Report: {report}" if report else ""))
    style = {"nothing left": "bold green", "something left": "bold red", "unknown": "bold magenta"}
    out.print(verdict_line(found), style=style[found.verdict])
