"""`trn cost`: what the cluster has cost, costs now, and will have cost at its end."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from trainium_cli.cluster_selection import command_clients, read_cluster_plan, stacks_of_cluster, stacks_option
from trainium_cli.exit_codes import ExitCode
from trainium_cli.money.cost_report import billed_table, lines_table, spending_as_json, summary
from trainium_cli.plan_options import plan_options
from trainium_cli.terminal import console, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.spending.aws_account import AwsSpendingAccount
from trainium_core.spending.runner import spending
from trainium_core.spending.spending import Spending
from trainium_runtime.errors import UnavailableError


@click.command()
@plan_options
@stacks_option
@click.option("--no-cost-explorer", is_flag=True, help="Do not ask Cost Explorer, which AWS bills for each request.")
def cost(
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    stacks: tuple[str, ...],
    no_cost_explorer: bool,
) -> None:
    """Show what the cluster has cost, costs now, and will have cost.

    Billed: by Cost Explorer and the tag trn:cluster, which the payer of the account must have activated. Estimated: by
    when Auto Scaling started and ended nodes, by how long the rest is there, and by list prices. What it costs before
    it is deployed is shown by `trn estimate`.

    Exit code 3 when an amount is not known, or something could not be read.
    """
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json)
    try:
        found = _read_spending(plan, stacks_of_cluster(plan, stacks), ask_cost_explorer=not no_cost_explorer)
    except UnavailableError as error:
        if as_json:
            print_json({"error": str(error)})
        click.echo(f"Could not tell: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.UNKNOWN) from error
    if as_json:
        print_json(spending_as_json(found))
    else:
        _show(found)
    raise click.exceptions.Exit(ExitCode.OK if found.is_complete else ExitCode.UNKNOWN)


def _read_spending(plan: Plan, stacks: Sequence[str], *, ask_cost_explorer: bool) -> Spending:
    if ask_cost_explorer:
        price = facts()["cost_explorer"]["usd_per_request"]
        click.echo(f"Asks Cost Explorer once, for which AWS bills ${price}; --no-cost-explorer does without.", err=True)
    message = f"Looking for {plan.cluster_name} in {plan.region}"
    with waiting(message) as change:
        return spending(
            plan,
            AwsSpendingAccount(plan.region, clients=command_clients()),
            stack_names=stacks,
            now=datetime.now(UTC),
            ask_cost_explorer=ask_cost_explorer,
            on_progress=lambda done, total: change(f"{message}: {done} of {total} questions answered"),
        )


def _show(found: Spending) -> None:
    out = console()
    since = f", since {found.since:%Y-%m-%d %H:%M} UTC" if found.since else ""
    out.print(f"{found.audit.cluster} in {found.audit.region}{since}", style="bold")
    out.print("US dollars, before tax and discounts.")
    out.print("In no estimate: what is billed by use, logs, SageMaker's jobs, and what is gone but for nodes.\n")
    if found.billed:
        out.print(billed_table(found))
        out.print()
    if found.estimated:
        out.print(lines_table(found.estimated, "Until now"))
        out.print()
    if found.now:
        out.print(lines_table(found.now, "Per hour"))
        out.print()
    for one in found.audit.not_read:
        out.print(f"Could not be read: {one.what}: {one.reason}")
    for reason in found.audit.prices_unavailable:
        out.print(f"AWS's prices are unavailable: {reason}")
    rows = summary(found)
    out.print(pairs(rows, label_width=max(len(label) for label, _ in rows)), style="bold")
