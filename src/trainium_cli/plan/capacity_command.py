"""`trn capacity`: what could run when, where, for how much."""

from datetime import UTC, datetime
from pathlib import Path

import click

from trainium_cli.command_group import CommandGroup
from trainium_cli.completion_values import complete_regions
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan.capacity_buy_command import buy
from trainium_cli.plan.capacity_options import WAYS_TO_GET_CAPACITY, chosen_regions, hours_option, latest_start
from trainium_cli.plan.capacity_report import found_as_json, show_found
from trainium_cli.plan_options import plan_options, read_plan
from trainium_cli.terminal import print_json
from trainium_cli.waiting import waiting
from trainium_core.capacity.option import outlook
from trainium_core.capacity.region_options import CapacityRequest
from trainium_core.capacity.search import search_capacity
from trainium_core.preflight.aws_account import AwsAccount
from trainium_runtime.aws_service import ATTEMPTS, CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, Clients
from trainium_runtime.errors import UnavailableError

_EXIT_CODES = {
    "something": ExitCode.OK,
    "nothing": ExitCode.NOT_READY,
    "could not tell": ExitCode.UNKNOWN,
}


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog=f"""
    All regions are queried in parallel. A connection may take {CONNECT_TIMEOUT_SECONDS} s, a response
    {READ_TIMEOUT_SECONDS} s; a call that fails or is throttled is made {ATTEMPTS} times in all. What has no response
    then is unknown.

    Exit code 0: something could run, now or later. 1: nothing, or only what AWS gives next to no chance. 3: could not
    tell, since nothing was found and a question got no answer.
    """,
)
@plan_options
@hours_option
@click.option(
    "--regions",
    metavar="REGION,...",
    shell_complete=complete_regions,
    help="Ask in these only. Default: every one that offers the type.",
)
@click.option(
    "--start-by",
    callback=latest_start,
    metavar="YYYY-MM-DD",
    help="The last day, in UTC, on which the nodes may start. Default: any.",
)
@click.pass_context
def capacity(
    ctx: click.Context,
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    hours: int,
    regions: str | None,
    start_by: datetime | None,
) -> None:
    """Show what could run when, where, for how much.

    For the plan's type and number of nodes, whatever its trn:capacity says: reservations of the account, on demand,
    spot and the Capacity Blocks for sale, over all regions, ranked. What could start now comes first, then what could
    start later, then what is unlikely, unknown or not to be had; among these what is paid for, then the cheapest by
    the hour.

    Only reads. `trn capacity buy` buys a Capacity Block.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options_before_the_command(ctx)
        return
    plan = read_plan(cdk_json, overrides, as_json=as_json, ignoring=WAYS_TO_GET_CAPACITY)
    chosen, clients = chosen_regions(plan, regions), Clients()
    request = CapacityRequest(plan=plan, hours=hours, now=datetime.now(UTC), start_by=start_by)
    with waiting(f"Asking AWS in {len(chosen)} regions ..."):
        try:
            found = search_capacity(request, chosen, lambda region: AwsAccount(region, clients=clients))
        except UnavailableError as error:
            if as_json:
                print_json({"error": str(error)})
            click.echo(f"Could not tell: {error}", err=True)
            raise click.exceptions.Exit(ExitCode.UNKNOWN) from error
    if as_json:
        print_json(found_as_json(request, found, overrides))
    else:
        show_found(request, found, overrides)
    raise click.exceptions.Exit(_EXIT_CODES[outlook(found.options)])


capacity.add_command(buy)


def _refuse_options_before_the_command(ctx: click.Context) -> None:
    if any(ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT for name in ctx.params):
        raise click.UsageError(f"options go behind {ctx.invoked_subcommand}, not before it")
