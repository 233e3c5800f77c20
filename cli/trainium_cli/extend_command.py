"""`trn extend`: moves the end of a pilot, says what that costs, and deploys it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import unified_diff
from pathlib import Path

import click

from trainium_cli.deployment import cdk_folder, deploy_stacks, somebody_is_there
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import read_plan
from trainium_cli.waiting import waiting
from trainium_core.account import CannotTellError
from trainium_core.adapters.prices import AwsPrices
from trainium_core.adapters.stack_control import AwsStackControl
from trainium_core.cdk_json import with_settings
from trainium_core.cost import Estimate, estimate
from trainium_core.forms import UnreadableError
from trainium_core.naming import STACK_NAME
from trainium_core.pilot_end import read_pilot_end, utc_text
from trainium_core.pilot_extension import extended_end
from trainium_core.plan import Plan

_HOUR = timedelta(hours=1)


def _duration(_ctx: click.Context, _param: click.Parameter, given: str) -> timedelta:
    try:
        after = read_pilot_end(given).after
    except UnreadableError as error:
        raise click.BadParameter(str(error)) from error
    if after is None:
        raise click.BadParameter("give a duration, such as 8h, 2d or 1w")
    return after


@click.command()
@click.argument("duration", callback=_duration)
@click.option(
    "--file",
    "cdk_json",
    type=click.Path(path_type=Path),
    default=Path("cdk.json"),
    help="The cdk.json to change. Default: the one of the working directory.",
)
@click.option("--yes", is_flag=True, help="Extend and deploy without asking anything, for scripts.")
def extend(duration: timedelta, cdk_json: Path, yes: bool) -> None:
    """Let the pilot end later, and say the price.

    DURATION is such as 8h, 2d or 1w. It counts from the end that is set, or from now if that has passed. Shows the new
    end and what the time costs, asks, writes trn:ends into cdk.json and deploys it.

    Exit code 0: extended and deployed. 1: not. 3: could not tell.
    """
    folder = cdk_folder(cdk_json)
    plan = read_plan(cdk_json, (), as_json=False)
    if plan.ends is None:
        raise click.UsageError("the plan has no end to be moved: set trn:ends")
    if not yes and not somebody_is_there():
        raise click.UsageError("nobody is there to be asked: give --yes")
    try:
        with waiting(f"Asking AWS for {STACK_NAME} in {plan.region} ..."):
            deployed = AwsStackControl(plan.region).created(STACK_NAME)
            estimated = estimate(plan, hours=Decimal(duration / _HOUR), aws=AwsPrices(plan.region))
    except CannotTellError as error:
        click.echo(f"Could not tell: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.COULD_NOT_TELL) from error
    new = utc_text(extended_end(plan.ends, by=duration, deployed=deployed, now=datetime.now(UTC)))
    before = cdk_json.read_text(encoding="utf-8")
    after = with_settings(before, {"ends": new})
    click.echo(_proposal(plan, new, estimated, deployed=deployed))
    changed = unified_diff(before.splitlines(), after.splitlines(), str(cdk_json), str(cdk_json), n=1, lineterm="")
    click.echo("\n".join(changed))
    if not yes and not click.confirm(f"\nWrite this to {cdk_json}, and deploy it?"):
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    cdk_json.write_text(after, encoding="utf-8")
    if deployed is None:
        click.echo(f"{STACK_NAME} is not deployed: the end counts from `trn deploy` on.")
        raise click.exceptions.Exit(ExitCode.OK)
    raise click.exceptions.Exit(deploy_stacks([STACK_NAME], region=plan.region, overrides=(), folder=folder, yes=yes))


def _proposal(plan: Plan, new: str, estimated: Estimate, *, deployed: datetime | None) -> str:
    assert plan.ends is not None
    now = datetime.now(UTC)
    current = read_pilot_end(plan.ends).instant(deployed or now)
    passed = " (passed)" if current <= now else ""
    return (
        f"{plan.cluster_name} ends at {new}, and not at {utc_text(current)}{passed}.\n"
        f"With {plan.nodes} x {plan.instance_type} running, {estimated.hours:f} hours more cost {estimated.pilot}.\n"
    )
