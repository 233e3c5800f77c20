"""`trn extend`: moves the end of a pilot, shows the cost, and deploys it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import unified_diff
from pathlib import Path

import click

from trainium_cli.cluster.deployment import cdk_folder, deploy_stacks, is_interactive
from trainium_cli.cluster_choice import cluster_stack_name, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation, changed_file_option, cluster_options, pass_invocation
from trainium_cli.terminal import echo, question, say
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.capacity.block_start import block_start
from trainium_core.costs.estimate import Estimate, estimate
from trainium_core.engines.registry import ENGINES
from trainium_core.plan import Plan
from trainium_core.plan.context import with_settings
from trainium_core.plan.pilot_end import extended_end, minute_text, read_pilot_end
from trainium_core.preflight.stack_checks import other_project
from trainium_core.setting_schema.forms import UnreadableError
from trainium_core.stacks.deployed_stack import DeployedStack
from trainium_runtime.pilot_end import utc_text

_HOUR = timedelta(hours=1)
_ENGINES_THAT_END = tuple(key for key, engine in ENGINES.items() if engine.ends_with_pilot)
"""Keys of the engines whose stacks end with the pilot."""


def _duration(_ctx: click.Context, _param: click.Parameter, value: str) -> timedelta:
    try:
        after = read_pilot_end(value).after
    except UnreadableError as error:
        raise click.BadParameter(str(error)) from error
    if after is None:
        raise click.BadParameter("specify a duration, such as 8h, 2d or 1w")
    return after


@click.command()
@click.argument("duration", callback=_duration)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@cluster_options
@changed_file_option
@pass_invocation
@interrupt_message("Interrupted: nothing was changed.")
def extend(invocation: Invocation, duration: timedelta, cdk_json: Path, yes: bool) -> ExitCode:
    """Move the end of the pilot, and show the price.

    DURATION, such as 8h, 2d or 1w, counts from the current end, or from now if that end has passed. Shows the new end
    and its cost, asks for confirmation, writes trn:ends into cdk.json, and deploys if the cluster is deployed. The new
    end does not replace nodes. For a cluster of another app, shows the new end and the change to make in that app.

    Exit code 0: extended; if the cluster is not deployed, in cdk.json only. 1: not extended, or the new end is written
    but not deployed, for example because other changes in cdk.json would terminate running nodes. 3: unknown.
    """
    elsewhere = _plan_elsewhere(invocation, cdk_json)
    if elsewhere:
        say(_refer_to_its_app(invocation, elsewhere, duration))
        return ExitCode.NOT_READY
    folder = cdk_folder(cdk_json)
    plan = invocation.plan()
    if plan.pilot.ends is None:
        raise click.UsageError("the plan has no end: set trn:ends")
    if not yes and not is_interactive():
        raise click.UsageError("not a terminal: pass --yes to confirm")
    found = _asked(plan, [plan.stack_names[key] for key in _ENGINES_THAT_END], duration)
    stacks = found.stacks
    _refuse_other_projects(invocation, plan, stacks)
    new = utc_text(_new_end(plan.pilot.ends, duration, found))
    before = cdk_json.read_text(encoding="utf-8")
    after = with_settings(before, {"ends": new})
    say(_proposal(plan, new, found))
    changed = unified_diff(before.splitlines(), after.splitlines(), str(cdk_json), str(cdk_json), n=1, lineterm="")
    echo("\n".join(changed))
    and_deploy = ", and deploy it" if stacks else ""
    if not yes and not click.confirm(question(f"\nWrite this to {cdk_json}{and_deploy}?")):
        echo("Nothing was changed.")
        return ExitCode.NOT_READY
    cdk_json.write_text(after, encoding="utf-8")
    if not stacks:
        say(f"{plan.cluster_name} is not deployed: `trn deploy` deploys it.")
        return ExitCode.OK
    deployed = [key for key, name in plan.stack_names.items() if name in stacks]
    extended = plan.but(ends=new)
    code = ExitCode.NOT_READY
    try:
        with interrupt_message(
            f"Interrupted: {cdk_json} has the new end, which is not deployed: `trn deploy` deploys it."
        ):
            code = deploy_stacks(extended, deployed, overrides=(), folder=folder, yes=yes, is_confirmed=True)
    finally:
        if code is not ExitCode.OK:
            now = _ends_now(plan.pilot.ends, found)
            echo(
                f"\n{cdk_json} has the new end, but its deployment did not complete. "
                f"According to the previous trn:ends, {now}.",
                err=True,
            )
    return code


def _refuse_other_projects(invocation: Invocation, plan: Plan, stacks: Mapping[str, DeployedStack]) -> None:
    """Raises CliError if another project deployed the cluster, unless --cluster names the cluster."""
    for name, stack in stacks.items():
        other = None if invocation.cluster else other_project(plan, stack)
        if other:
            fix = f"Run `trn extend` in the folder of that project, or pass --cluster {plan.cluster_name}."
            raise CliError(f"Nothing was changed: {name} belongs to the project {other}. {fix}", ExitCode.NOT_READY)


def _plan_elsewhere(invocation: Invocation, cdk_json: Path) -> Plan | None:
    """The plan of the selected cluster; None if cdk.json describes that cluster."""
    if not cdk_json.exists():
        if cdk_json.parent != Path():
            cdk_folder(cdk_json)  # raises: --file names a missing file
        return read_cluster_plan(replace(invocation, cdk_json=None))
    selected = read_cluster_plan(invocation)
    if not invocation.has_plan:
        return selected
    plan = invocation.plan()
    return None if (plan.cluster_name, plan.region) == (selected.cluster_name, selected.region) else selected


def _refer_to_its_app(invocation: Invocation, plan: Plan, duration: timedelta) -> str:
    if plan.pilot.ends is None:
        return f"{plan.cluster_name} in {plan.region} has no end."
    found = _asked(plan, [cluster_stack_name(invocation, plan, None)], duration)
    new, estimated = _new_end(plan.pilot.ends, duration, found), found.estimated
    in_python = f"datetime({new.year}, {new.month}, {new.day}, {new.hour}, {new.minute}, tzinfo=UTC)"
    return (
        f"{_ends_now(plan.pilot.ends, found)}. With {plan.nodes} x {plan.instance_type} running, "
        f"{estimated.hours:f} hours more cost {estimated.pilot}.\n"
        f"Nothing was changed: no cdk.json here describes {plan.cluster_name} in {plan.region}. In the folder of the "
        f"one that does, run `trn extend`; in another app, pass end=PilotEnd.at({in_python}) to the fleet, "
        "and deploy the app."
    )


@dataclass(frozen=True)
class _Found:
    stacks: Mapping[str, DeployedStack]
    estimated: Estimate
    block_begins: datetime | None


def _asked(plan: Plan, names: Sequence[str], duration: timedelta) -> _Found:
    """The existing stacks, the cost of the extension, and the start of the Capacity Block. Raises UnavailableError."""
    account = AwsAccount(plan.region)
    with waiting(f"Asking AWS for the stacks in {plan.region} ..."):
        described = {name: account.stacks.deployed_stack(name) for name in names}
        stacks = {name: stack for name, stack in described.items() if stack is not None}
        begins = block_start(
            plan.pilot.ends, account.capacity, capacity=plan.capacity, reservation_id=plan.reservation_id
        )
        return _Found(stacks, estimate(plan, hours=Decimal(duration / _HOUR), aws=account.prices), begins)


def _new_end(ends: str, duration: timedelta, found: _Found) -> datetime:
    now = datetime.now(UTC)
    since = [stack.created for stack in found.stacks.values()] or [None]
    return max(
        extended_end(ends, by=duration, deployed=created, now=now, block_begins=found.block_begins) for created in since
    )


def _ends_now(ends: str, found: _Found) -> str:
    """The end of each stack according to `ends`, which may not be deployed yet."""
    now = datetime.now(UTC)
    stack_ends: list[str] = []
    for name, stack in found.stacks.items():
        end = read_pilot_end(ends).instant(stack.created, found.block_begins)
        stack_ends.append(f"{name} {'ended' if end <= now else 'ends'} at {minute_text(end)}")
    return ", ".join(stack_ends)


def _proposal(plan: Plan, new: str, found: _Found) -> str:
    assert plan.pilot.ends is not None
    estimated = found.estimated
    lines = [f"New end of {plan.cluster_name}: {new}."]
    if found.stacks:
        lines.append(f"According to the current trn:ends, {_ends_now(plan.pilot.ends, found)}.")
    lines.append(
        f"With {plan.nodes} x {plan.instance_type} running, {estimated.hours:f} hours more cost {estimated.pilot}."
    )
    return "\n".join([*lines, ""])
