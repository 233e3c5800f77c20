"""`trn cost`: past, current and expected costs of the cluster."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from trainium_cli.cluster_choice import cluster_stack_names, read_tagged_plan
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options, stacks_option
from trainium_cli.layout import Table
from trainium_cli.terminal import console, echo, pairs, print_json, table
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import Total, dollars
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.spending.aws_account import AwsSpendingAccount
from trainium_core.spending.runner import spending
from trainium_core.spending.spending import Spending, SpendingLine


@click.command()
@click.option("--no-cost-explorer", is_flag=True, help="Do not use Cost Explorer, which AWS bills per request.")
@stacks_option
@plan_options
@pass_invocation
def cost(invocation: Invocation, stacks: tuple[str, ...], no_cost_explorer: bool) -> ExitCode:
    """Show past, current and expected costs of the cluster.

    Billed costs come from Cost Explorer by the tag trn:cluster, which the payer of the account must have activated as a
    cost allocation tag. Estimated costs follow from the scaling activities of the nodes, the age of other resources,
    and the prices that `trn estimate` uses. `trn estimate` shows the costs before a deployment.

    Exit code 0: every estimated amount is known. 3: one is unknown, or something could not be read.
    """
    plan = read_tagged_plan(invocation)
    stack_names = cluster_stack_names(invocation, plan, stacks)
    costs = _read_spending(invocation, plan, stack_names, ask_cost_explorer=not no_cost_explorer)
    if invocation.as_json:
        print_json(spending_as_json(costs))
    else:
        _show(costs)
    return ExitCode.OK if costs.is_complete else ExitCode.UNKNOWN


def _read_spending(invocation: Invocation, plan: Plan, stacks: Sequence[str], *, ask_cost_explorer: bool) -> Spending:
    if ask_cost_explorer:
        price = facts()["cost_explorer"]["usd_per_request"]
        echo(f"Queries Cost Explorer once, for which AWS bills ${price}; --no-cost-explorer avoids this.", err=True)
    message = f"Looking for {plan.cluster_name} in {plan.region}"
    with waiting(message) as change:
        return spending(
            plan,
            AwsSpendingAccount(
                plan.region, clients=invocation.clients, known=invocation.cluster_stacks.get(plan.region)
            ),
            stack_names=stacks,
            now=datetime.now(UTC),
            ask_cost_explorer=ask_cost_explorer,
            on_progress=lambda done, total: change(f"{message}: {done} of {total} lists read"),
        )


def _show(costs: Spending) -> None:
    out = console()
    since = f", since {costs.since:%Y-%m-%d %H:%M} UTC" if costs.since else ""
    out.print(f"{costs.audit.cluster} in {costs.audit.region}{since}", style="bold")
    out.print("US dollars, before tax and discounts.")
    out.print("Not estimated: items billed by use, logs, SageMaker jobs, and deleted resources other than nodes.\n")
    if costs.billed:
        out.print(billed_table(costs))
        out.print()
    if costs.estimated:
        out.print(lines_table(costs.estimated, "Until now"))
        out.print()
    if costs.now:
        out.print(lines_table(costs.now, "Per hour"))
        out.print()
    for unread in costs.audit.not_read:
        out.print(f"Could not be read: {unread.what}: {unread.reason}")
    for reason in costs.audit.prices_unavailable:
        out.print(f"AWS prices are unavailable: {reason}")
    rows = summary(costs)
    out.print(pairs(rows), style="bold")


LAG = "Cost Explorer lags by up to a day and does not include the last hours."


def lines_table(lines: Iterable[SpendingLine], amount: str) -> Table:
    rows = [(line.what, "unknown" if line.usd is None else dollars(line.usd), line.how) for line in lines]
    return table(["What", amount, "Basis"], rows, right=[amount], wrapping=["What", "Basis"])


def billed_table(spending: Spending) -> Table:
    services = sorted((spending.billed or {}).items(), key=lambda item: -item[1])
    return table(["Service", "Billed"], [(service, dollars(usd)) for service, usd in services], right=["Billed"])


def summary(spending: Spending) -> list[tuple[str, str]]:
    """The main numbers, each with its basis."""
    if spending.billed_total is None:
        billed = f"unknown: {spending.not_billed}"
    else:
        billed = f"{dollars(spending.billed_total)}, by Cost Explorer. {LAG}"
    rows = [
        ("Billed until now", billed),
        ("Estimated until now", f"{spending.estimated_total} (estimated)"),
        ("Per hour now", f"{spending.hourly}"),
    ]
    forecast = spending.forecast
    if forecast is None:
        return [*rows, ("At the end", "no forecast: the plan has no end (trn:ends), or no stack exists")]
    message = f"{forecast.total} (estimated), if the next {forecast.hours:.1f} h cost as much per hour as now"
    return [*rows, (f"At the end, {forecast.ends:%Y-%m-%d %H:%M} UTC", message)]


def spending_as_json(spending: Spending) -> dict[str, Any]:
    """The document of --json. Unknown amounts are null."""
    forecast = spending.forecast
    return {
        "cluster": spending.audit.cluster,
        "region": spending.audit.region,
        "account": spending.audit.identity.account,
        "time": spending.audit.time,
        "since": spending.since,
        "currency": "USD",
        "billed": None
        if spending.billed is None
        else {service: float(usd) for service, usd in spending.billed.items()},
        "billed_total": None if spending.billed_total is None else float(spending.billed_total),
        "billed_lag": LAG,
        "why_not_billed": spending.not_billed or None,
        "estimated": [_line(line) for line in spending.estimated],
        "estimated_total": _total(spending.estimated_total),
        "per_hour": [_line(line) for line in spending.now],
        "per_hour_total": _total(spending.hourly),
        "forecast": None
        if forecast is None
        else {"ends": forecast.ends, "hours_left": float(forecast.hours), "total": _total(forecast.total)},
        "not_read": [{"what": unread.what, "reason": unread.reason} for unread in spending.audit.not_read],
        "prices_unavailable": list(spending.audit.prices_unavailable),
    }


def _line(line: SpendingLine) -> dict[str, Any]:
    return {"what": line.what, "usd": None if line.usd is None else float(line.usd), "how": line.how}


def _total(total: Total) -> dict[str, Any]:
    return {"at_least": float(total.usd), "unknown_amounts": total.unknown}
