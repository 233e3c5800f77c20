"""`trn capacity buy`: buys one Capacity Block, after two confirmations."""

import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.plan.plan_choices import WAYS_TO_GET_CAPACITY, hours_option
from trainium_cli.terminal import console, pairs
from trainium_core.capacity.aws_purchase import AwsCapacityPurchase, SaleUnknownError
from trainium_core.capacity.offerings import BlockOffering, Capacity
from trainium_core.capacity.option import CapacityOption
from trainium_core.identity.caller import Identity
from trainium_core.plan import Plan
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.problems import SETTING_PREFIX
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.pilot_clock import stops_before_block_end


@click.command()
@click.argument("offering_id")
@context_options
@hours_option
@pass_invocation
def buy(invocation: Invocation, offering_id: str, hours: int) -> ExitCode:
    """Buy a Capacity Block that `trn capacity` found.

    OFFERING_ID, trn:region, trn:instance_type, trn:nodes and --hours must be those of the search. The command reads and
    shows the offering again and asks for confirmation twice; the second time you type the price. A Capacity Block is
    paid in advance and cannot be cancelled. No option skips the confirmations, and no other command buys a Capacity
    Block.

    Exit code 0: bought. 1: not bought. 2: not a terminal, or an invalid plan or option. 3: a request to AWS failed;
    unless the message says that nothing was bought, check before you try again.
    """
    if not _is_interactive():
        raise click.UsageError("a purchase requires two confirmations: run it in a terminal")
    plan = invocation.plan(ignoring=WAYS_TO_GET_CAPACITY)
    account = AwsAccount(plan.region)
    try:
        identity = account.identity()
        offering = _read_again(account, plan, offering_id, hours)
    except UnavailableError as error:
        raise CliError(f"Nothing was bought: {error}", ExitCode.UNKNOWN) from error
    if offering is None:
        reason = f"{plan.region} offers no {offering_id} for {plan.nodes} x {plan.instance_type} and {hours} h"
        hint = "It was sold, or was found with other --hours, type, region or number of nodes: see `trn capacity`."
        raise CliError(f"Nothing was bought: {reason}. {hint}", ExitCode.NOT_READY)
    _show(offering, plan, identity)
    if not click.confirm("Buy it?"):
        raise CliError("\nNothing was bought.", ExitCode.NOT_READY)
    _check_price(offering)
    _buy(offering, plan)
    return ExitCode.OK


def _is_interactive() -> bool:
    return sys.stdin.isatty()


def _read_again(account: Capacity, plan: Plan, offering_id: str, hours: int) -> BlockOffering | None:
    """The offering, read again; None if it is no longer offered. Raises UnavailableError."""
    offered = account.block_offerings(instance_type=plan.instance_type, instances=plan.nodes, hours=hours)
    return next((offering for offering in offered or () if offering.offering_id == offering_id), None)


def _show(offering: BlockOffering, plan: Plan, identity: Identity) -> None:
    elsewhere = f", answered by {identity.endpoint}, not by AWS" if identity.endpoint else ""
    rows = [
        ("account", f"{identity.account}, as {identity.arn}{elsewhere}"),
        ("offering", offering.offering_id),
        ("instances", f"{offering.instances} x {offering.instance_type}"),
        ("place", f"{offering.zone_id} in {plan.region}"),
        ("start", f"{offering.start:%Y-%m-%d %H:%M} UTC"),
        ("end", f"{offering.end:%Y-%m-%d %H:%M} UTC, {offering.hours:.4g} h after the start; {_termination(offering)}"),
        ("price", f"{_price(offering)}, paid in advance whether instances run or not; it cannot be cancelled"),
    ]
    console().print(pairs(rows, label_width=9))


def _termination(offering: BlockOffering) -> str:
    return f"nodes stop {stops_before_block_end(offering.instance_type) // timedelta(minutes=1)} minutes before the end"


def _price(offering: BlockOffering) -> str:
    return f"{offering.upfront_fee:,} {offering.currency}"


def _check_price(offering: BlockOffering) -> None:
    """Ask for the price. Raises CliError unless the answer is the price of the offering."""
    typed: str = click.prompt(f"Type the price in {offering.currency} to buy it", default="", show_default=False)
    try:
        is_same = Decimal(typed.strip().lstrip("$").replace(",", "")) == offering.upfront_fee
    except InvalidOperation:
        is_same = False
    if not is_same:
        raise CliError(f"\nNothing was bought: the price is {_price(offering)}, not {typed!r}.", ExitCode.NOT_READY)


def _buy(offering: BlockOffering, plan: Plan) -> None:
    try:
        bought = AwsCapacityPurchase(plan.region).buy(offering.offering_id)
    except RequestRefusedError as error:
        raise CliError(f"\nNothing was bought: {error}", ExitCode.NOT_READY) from error
    except SaleUnknownError as error:
        message = (
            f"\nUnknown whether the Capacity Block was bought: {error}. Check the account with "
            "`trn capacity` and `aws ec2 describe-capacity-blocks` before you try again."
        )
        raise CliError(message, ExitCode.UNKNOWN) from error
    chosen = CapacityOption(
        capacity="capacity-block",
        region=plan.region,
        zone_id=offering.zone_id,
        reservation_id=bought.reservation_id,
        prospect="later",
    )
    console().print(f"\nBought: {bought.reservation_id} is {bought.state}. The settings for it:")
    for name, value in chosen.settings.items():
        console().print(f'  "{SETTING_PREFIX}{name}": "{value}",')
    begins = f"from {offering.start:%Y-%m-%d %H:%M} UTC on" if offering.start > datetime.now(UTC) else "now"
    console().print(f"\nNodes can launch {begins}.", style="bold")
