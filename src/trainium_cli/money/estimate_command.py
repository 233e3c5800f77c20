"""`trn estimate`: the cost of the plan, line by line, with the source of each price."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.terminal import console, print_json, table
from trainium_core.costs.estimate import (
    PILOT_HOURS,
    CostLine,
    Estimate,
    Total,
    dollars,
    sales_warning,
    stack_cost_items,
    stack_cost_notes,
)
from trainium_core.costs.estimate import estimate as estimate_cost
from trainium_core.facts import facts
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import hours_to_end
from trainium_core.plan.settings.network import Egress
from trainium_core.prices.price import Origin, Price, Prices
from trainium_core.problems import PlanError

_ORIGINS: dict[Origin, str] = {"yours": "trn:prices", "AWS": "AWS", "snapshot": "snapshot in this package"}


@click.command()
@click.option(
    "--hours",
    metavar="HOURS",
    type=click.IntRange(min=1),
    help=f"Length of the pilot. Default: until trn:ends, or {PILOT_HOURS} hours if it is not set or has passed.",
)
@click.option("--offline", is_flag=True, help="Use only trn:prices and the prices in this package.")
@plan_options
@pass_invocation
def estimate(invocation: Invocation, hours: int | None, offline: bool) -> ExitCode:
    """Show what the plan costs running, asleep and for a pilot.

    Prices come from the file that trn:prices names, else from the AWS Price List if the credentials allow it, else from
    the dated snapshot of prices in this package. A price that none of them has is unknown, not 0. So is a spot or
    Capacity Block price of the snapshot that is older than 180 days: it is shown with its date, and is in no total.

    Exit code 0: every price of the totals is known. 3: a total lacks a price.
    """
    plan = invocation.plan()
    aws = None if offline else aws_prices(plan.region)
    length = Decimal(hours or hours_to_end(plan.pilot.ends, datetime.now(UTC)) or PILOT_HOURS)
    estimated = estimate_cost(plan, hours=length, aws=aws, items=stack_cost_items)
    if invocation.as_json:
        print_json(estimate_as_json(plan, estimated))
    else:
        _show(plan, estimated)
        for note in _other_egress(plan, estimated, aws):
            console().print(note)
    return ExitCode.UNKNOWN if estimated.running_hour.unknown else ExitCode.OK


def aws_prices(region: str) -> Prices:
    from trainium_core.aws.prices import AwsPrices  # boto3, which --offline does not import.

    return AwsPrices(region)


def _show(plan: Plan, estimated: Estimate) -> None:
    out = console()
    stacks = "" if plan.stacks == ("cluster",) else f": {', '.join(CONSTRUCT_IDS[stack] for stack in plan.stacks)}"
    what = f"{plan.nodes} x {plan.instance_type}, {plan.capacity}, in {plan.region}{stacks}"
    out.print(f"{estimated.pilot} for {estimated.hours} h of {what}", style="bold")
    out.print(
        f"Running: {estimated.running_hour} per hour. Asleep: {estimated.asleep_month} per month. "
        "US dollars at list price, before tax and discounts.\n"
    )
    sources = price_sources(estimated)
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
    for (origin, date, source), number in sources.items():
        out.print(f"[{number}] {_ORIGINS[origin]}, {date}: {source}")
    for reason in estimated.unavailable:
        out.print(f"AWS prices are unavailable: {reason}")
    for note in notes_on(plan, estimated):
        out.print(note)
    warning = sales_warning(plan, estimated)
    if warning is not None:
        out.print(f"warning: {warning}", style="yellow")


def _other_egress(plan: Plan, estimated: Estimate, aws: Prices | None) -> Iterator[str]:
    """What the cluster costs with the other egress of a new VPC, if that changes the price."""
    is_open = plan.network.effective_egress == "nat-gateway"
    egress: Egress = "vpc-endpoints" if is_open else "nat-gateway"
    try:
        other = plan.but(egress=egress)
    except PlanError:
        return
    total = estimate_cost(other, hours=estimated.hours, aws=aws, items=stack_cost_items).running_hour
    if total != estimated.running_hour:
        network = "without internet access" if is_open else "with internet access"
        yield f"With trn:egress={egress}, {network}, a running hour costs {total}."


Footnotes = Mapping[tuple[Origin, str, str], int]
"""The number of each source, by origin, date and name."""


def price_sources(estimated: Estimate) -> Footnotes:
    """The sources of all prices, numbered in the order of the lines."""
    named = dict.fromkeys(_source(line.price) for line in estimated.lines if line.price is not None)
    return {source: number for number, source in enumerate(named, start=1)}


def _source(price: Price) -> tuple[Origin, str, str]:
    return (price.origin, price.date, price.source)


def row(line: CostLine, hours: Decimal, sources: Footnotes) -> tuple[str, ...]:
    """The item, its unit price and source, and its cost running, asleep and for the pilot."""
    note = "" if line.price is None else f"[{sources[_source(line.price)]}]"
    if line.billed == "by use":
        return (line.what, _unit_price(line), note, "by use", "by use", "by use")
    asleep = "prepaid" if line.billed == "prepaid" else _amount(line.asleep_month)
    return (line.what, _unit_price(line), note, _amount(line.running_hour), asleep, _amount(line.pilot(hours)))


def _unit_price(line: CostLine) -> str:
    if line.unit_usd is None:
        was = line.price and line.price.was
        return f"unknown, was {_digits(was)} on {line.price.date}" if line.price and was else f"unknown /{line.unit}"
    return f"{_digits(line.unit_usd)} /{line.unit}"


def _digits(usd: Decimal) -> str:
    return f"{usd:,.{max(2, -int(usd.normalize().as_tuple().exponent))}f}"


def _amount(usd: Decimal | None) -> str:
    if usd is None:
        return "unknown"
    return "-" if usd == 0 else dollars(usd)


def notes_on(plan: Plan, estimated: Estimate) -> list[str]:
    """Notes on the table of this plan."""
    notes = [
        "Asleep (`trn sleep`): no nodes, and no endpoints or gateways billed by the hour. "
        "Items billed by use cost extra, depending on your use. "
        f"A month is {facts()['billing']['hours_per_month']} hours. "
        "Lambda, logs and requests to S3 cost almost nothing and are left out."
    ]
    if plan.capacity == "spot":
        notes.append("Spot prices change: this is a past price, not a budget.")
    if plan.capacity == "capacity-block":
        notes.append("A Capacity Block is paid at purchase for its whole duration, whether nodes run or not.")
    if plan.capacity == "reservation":
        notes.append("A reservation is billed at the on-demand rate until you cancel it, whether nodes run or not.")
    if plan.network.vpc_id is not None:
        notes.append(f"Endpoints and gateways of {plan.network.vpc_id} are not part of the plan or of this estimate.")
    notes += [f"{note[:1].upper()}{note[1:]}." for note in stack_cost_notes(plan)]
    if estimated.unknown:
        missing = ", ".join(dict.fromkeys(line.item.product for line in estimated.unknown))
        notes.append(f"Unknown in {plan.region}: {missing}. Specify prices in a CSV file: -c trn:prices=prices.csv")
    return notes


def estimate_as_json(plan: Plan, estimated: Estimate) -> dict[str, Any]:
    """Every line and total. Unknown prices and amounts are null, as are the amounts of lines that are billed by use."""
    return {
        "hours": int(estimated.hours),
        "currency": "USD",
        "totals": {
            "running_hour": _total_as_json(estimated.running_hour),
            "asleep_month": _total_as_json(estimated.asleep_month),
            "pilot": _total_as_json(estimated.pilot),
        },
        "lines": [_line_as_json(line, estimated.hours) for line in estimated.lines],
        "prices_unavailable": list(estimated.unavailable),
        "warning": sales_warning(plan, estimated),
    }


def _total_as_json(total: Total) -> dict[str, Any]:
    return {"usd_at_least": float(total.usd), "unknown_prices": total.unknown}


def _line_as_json(line: CostLine, hours: Decimal) -> dict[str, Any]:
    amounts = {"running_hour": line.running_hour, "asleep_month": line.asleep_month, "pilot": line.pilot(hours)}
    price = (
        None
        if line.price is None
        else {**asdict(line.price), "usd": _number(line.price.usd), "was": _number(line.price.was)}
    )
    return {
        "what": line.what,
        "product": line.item.product,
        "quantity": line.quantity if isinstance(line.quantity, int) else float(line.quantity),
        "unit": line.unit,
        "billed": line.billed,
        "price": price,
        **{name: None if line.billed == "by use" else _number(usd) for name, usd in amounts.items()},
    }


def _number(usd: Decimal | None) -> float | None:
    return None if usd is None else float(usd)
