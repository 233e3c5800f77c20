"""`trn estimate`: what the plan costs, line by line, with the source of each price."""

from decimal import Decimal
from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.money.estimate_report import estimate_as_json, notes_on, row, sources_of
from trainium_cli.plan_options import plan_options, read_plan
from trainium_cli.terminal import console, pairs, print_json, table
from trainium_core.costs.estimate import PILOT_HOURS, Estimate, sales_warning
from trainium_core.costs.estimate import estimate as estimate_cost
from trainium_core.costs.stacks import stack_cost_items
from trainium_core.engines.registry import CONSTRUCT_IDS
from trainium_core.plan import Plan
from trainium_core.prices.price import Origin, Prices

_ORIGINS: dict[Origin, str] = {"yours": "your own", "AWS": "AWS", "snapshot": "snapshot in this package"}


@click.command()
@plan_options
@click.option(
    "--hours",
    type=click.IntRange(min=1),
    default=PILOT_HOURS,
    show_default=True,
    help="Length of the pilot. The default is a working day.",
)
@click.option("--offline", is_flag=True, help="Do not ask AWS for prices: use your own and the snapshot.")
def estimate(overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, hours: int, offline: bool) -> None:
    """Show what the plan costs running, asleep and for a pilot.

    Asks the AWS Price List if the credentials allow it, else takes a dated snapshot. A price that no source has is
    unknown and not 0; give your own in a file named by trn:prices. Exit code 3 when a price is missing in a total.
    """
    plan = read_plan(cdk_json, overrides, as_json=as_json)
    aws = None if offline else _aws(plan.region)
    estimated = estimate_cost(plan, hours=Decimal(hours), aws=aws, items=stack_cost_items)
    if as_json:
        print_json(estimate_as_json(plan, estimated))
    else:
        _show(plan, estimated)
    raise click.exceptions.Exit(ExitCode.UNKNOWN if estimated.running_hour.unknown else ExitCode.OK)


def _aws(region: str) -> Prices:
    from trainium_core.prices.aws_prices import AwsPrices  # boto3, which --offline need not import

    return AwsPrices(region)


def _show(plan: Plan, estimated: Estimate) -> None:
    out = console()
    stacks = "" if plan.stacks == ("cluster",) else f": {', '.join(CONSTRUCT_IDS[stack] for stack in plan.stacks)}"
    out.print(f"{plan.nodes} x {plan.instance_type}, {plan.capacity}, in {plan.region}{stacks}", style="bold")
    out.print("US dollars by list price, before tax and discounts.\n")
    sources = sources_of(estimated)
    numbers = ["Running,\nper hour", "Asleep,\nper month", f"Pilot,\n{estimated.hours} h"]
    out.print(
        table(
            ["Billed", "Unit price", "[ ]", *numbers],
            [row(line, estimated.hours, sources) for line in estimated.lines],
            right=["Unit price", *numbers],
            wrapping=["Billed"],
        )
    )
    out.print()
    totals = [
        ("Running, per hour", f"{estimated.running_hour}"),
        ("Asleep, per month", f"{estimated.asleep_month}"),
        (f"Pilot of {estimated.hours} h", f"{estimated.pilot}"),
    ]
    out.print(pairs(totals, label_width=max(len(label) for label, _ in totals)), style="bold")
    out.print()
    for (origin, date, source), number in sources.items():
        out.print(f"[{number}] {_ORIGINS[origin]}, {date}: {source}")
    for reason in estimated.unavailable:
        out.print(f"AWS's prices are unavailable: {reason}")
    for note in notes_on(plan, estimated):
        out.print(note)
    warning = sales_warning(plan, estimated)
    if warning is not None:
        out.print(f"warning: {warning}", style="yellow")
