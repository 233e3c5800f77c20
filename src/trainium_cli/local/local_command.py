"""`trn local`: starts, shows and stops the embedded AWS, and runs commands against it."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource
from rich.text import Text

from trainium_cli.layout import Pairs
from trainium_cli.lazy_group import CommandGroup
from trainium_cli.mistakes import mistake
from trainium_cli.terminal import LOCAL_PREFIX, console, echo, say
from trainium_local import DEFAULT_PORT, DEFAULT_REGION

if TYPE_CHECKING:
    from trainium_local.server import Health

NOT_RUNNING = 3
RUN = "run-command"
PROVES = (
    "A deployment to it shows that a template is complete and valid, that its resources are created in the right "
    "order, that it rolls back, and that it is deleted completely. It does not test IAM permissions (except with --iam "
    "enforced), capacity, networks or Neuron devices: its instances run no programs."
)


class LocalGroup(CommandGroup):
    """Passes everything after `--` to the user's command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["--"]:
            args = [RUN, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            known = ", ".join(name for name in self.list_commands(ctx) if name != RUN)
            ctx.fail(
                f"no such command: {args[0]!r}; known: {known}. "
                f"To run a command against the embedded AWS: trn local -- {' '.join(args)}"
            )
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        own = [name for name in self.list_commands(ctx) if name != RUN]
        return [" | ".join([*own, "-- COMMAND..."])]


@click.group("local", cls=LocalGroup)
def local() -> None:
    """Emulate AWS on this machine, and run commands against it.

    The embedded AWS deploys clusters without an account. `trn local -- COMMAND` runs a command in an environment in
    which only the embedded AWS can be reached:

        trn local -- cdk deploy TrnClusterStack
    """
    if find_spec("moto") is None or find_spec("cfnlint") is None:
        raise click.ClickException(
            "the embedded AWS is not installed. Install it with: pip install 'trainium-cdk[local]'"
        )


def quotas_by_code(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Parse CODE=VALUE. Raises BadParameter for a quota that the embedded AWS does not have, or an invalid number."""
    from trainium_core.problems import nearest
    from trainium_local.seeds.vcpu_quotas import seeded_quotas

    known = [quota.code for quota in seeded_quotas()]
    quotas: dict[str, float] = {}
    for text in values:
        code, _, number = text.partition("=")
        if code not in known:
            hint = f"; nearest: {nearest(code, known)}" if nearest(code, known) else ""
            raise click.BadParameter(f"no quota {code!r} in the embedded AWS{hint}; known: {', '.join(known)}")
        if not number.isdecimal():
            raise click.BadParameter(f"{text!r}: specify an integer number of vCPUs, 0 or more, such as {code}=256")
        quotas[code] = float(number)
    return quotas


def known_region(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Refuse a value that is not a region with EC2. Raises UsageError."""
    from botocore.session import Session

    from trainium_core.catalog.catalog import nearest_region

    session: Any = Session()
    known: list[str] = session.get_available_regions("ec2")
    if value not in known:
        close = nearest_region(value, known)
        fix = f"choose {close}" if close else "choose a region of AWS, or omit the option"
        raise mistake(
            "--region", value, allowed=f"a region that has EC2, such as {DEFAULT_REGION}", nearest=close, fix=fix
        )
    return value


@local.command()
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="0 selects a free port.",
)
@click.option(
    "--region",
    metavar="REGION",
    callback=known_region,
    default=DEFAULT_REGION,
    show_default=True,
    help="Default region of commands.",
)
@click.option(
    "--quota",
    "quotas",
    multiple=True,
    callback=quotas_by_code,
    metavar="CODE=VALUE",
    help="Number of vCPUs that a quota allows, instead of the default of the embedded AWS. Repeatable.",
)
@click.option(
    "--no-capacity",
    multiple=True,
    metavar="ZONE_ID",
    help="Let every launch without a reservation fail in this zone, such as usw2-az4. Repeatable.",
)
@click.option(
    "--fail-nodes",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Make the first N nodes report a missing device.",
)
@click.option(
    "--iam",
    type=click.Choice(("enforced", "ignored")),
    default="ignored",
    show_default=True,
    help="enforced: roles, users, functions and CloudFormation may do only what their policies allow.",
)
@click.pass_context
def start(
    ctx: click.Context,
    port: int,
    region: str,
    quotas: dict[str, float],
    no_capacity: tuple[str, ...],
    fail_nodes: int,
    iam: str,
) -> None:
    """Start the embedded AWS in the background. Fails if it is running with settings other than the given options."""
    from trainium_local.server import Settings

    options = {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    settings = Settings(
        port=port, region=region, quotas=quotas, no_capacity=no_capacity, fail_nodes=fail_nodes, iam=iam
    )
    started = _start(settings)
    if started.already:
        _refuse_other_settings(started.health, {name: ctx.params[name] for name in options})
    health = started.health
    running = "is already running" if started.already else "is running"
    say(f"The embedded AWS {running} at {health.endpoint}, in {health.region}. Use it with: trn local -- COMMAND")


@local.command()
@click.option("--json", "as_json", is_flag=True, help="Print the server's state as JSON.")
def status(as_json: bool) -> None:
    """Show whether the embedded AWS is running, its settings, and what it tests. Exit code 3 if it is not running."""
    from trainium_local import lifecycle

    health = lifecycle.status(lifecycle.home(os.environ))
    if as_json:
        echo(health.to_json() if health else "null")
    elif health:
        console().print(_health_table(health))
        console().print(PROVES)
    else:
        say("The embedded AWS is not running. Start it with: trn local start")
    if health is None:
        raise SystemExit(NOT_RUNNING)


@local.command()
def stop() -> None:
    """Stop the embedded AWS. Everything in it is lost: its state is in memory only."""
    from trainium_local import lifecycle

    try:
        stopped = lifecycle.stop(lifecycle.home(os.environ))
    except lifecycle.LocalError as error:
        raise click.ClickException(str(error)) from error
    say(
        f"The embedded AWS at {stopped.endpoint} is stopped; its contents are deleted."
        if stopped
        else "The embedded AWS is not running; nothing to stop."
    )


@local.command(RUN, hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run_command(command: tuple[str, ...]) -> None:
    """Run COMMAND, replacing this process, in an environment in which only the embedded AWS can be reached."""
    from trainium_cli.cdk_program import find_cdk
    from trainium_local.environment import NotTheEmbeddedAwsError, safe_environment, tool_folders
    from trainium_local.server import Settings

    if not command:
        raise click.UsageError("specify a command after --, as in: trn local -- cdk deploy")
    started = _start(Settings(port=DEFAULT_PORT))
    health = started.health
    if not started.already:
        echo(f"The embedded AWS was not running: started at {health.endpoint}. `trn local stop` ends it.", err=True)
    try:
        environment = safe_environment(os.environ, started.connection, tools=tool_folders())
        environment[LOCAL_PREFIX] = "trn local --"
    except NotTheEmbeddedAwsError as error:
        raise click.ClickException(str(error)) from error
    # Only this program is from node_modules, whose other programs could replace those of the system.
    program = find_cdk(Path.cwd()) if command[0] == "cdk" else command[0]
    try:
        os.execvpe(program, command, environment)
    except OSError as error:
        raise click.ClickException(f"{command[0]}: cannot be run ({error.strerror})") from error


def _refuse_other_settings(running: "Health", options: Mapping[str, Any]) -> None:
    """Raise ClickException if settings differ from those of the running server, which would ignore them."""
    has: dict[str, Any] = {name: getattr(running, name) for name in ("region", "fail_nodes", "iam")}
    has["no_capacity"] = tuple(running.no_capacity)
    if options.get("port"):
        has["port"] = urlsplit(running.endpoint).port
    requested = {name: options[name] for name in has if name in options}
    for code, value in options.get("quotas", {}).items():
        requested[code], has[code] = int(value), int(running.quotas[code])
    shown = {name: f"--{name.replace('_', '-')}" for name in options}
    other = [
        f"{shown.get(name, name)}: requested {value}, is {has[name]}"
        for name, value in requested.items()
        if value != has[name]
    ]
    if other:
        raise click.ClickException(
            f"the embedded AWS is already running, at {running.endpoint}, with other settings ({'; '.join(other)}). "
            "Stop it first with: trn local stop"
        )


def _start(settings: Any) -> Any:
    from trainium_local import lifecycle

    try:
        return lifecycle.start(lifecycle.home(os.environ), settings)
    except lifecycle.LocalError as error:
        raise click.ClickException(str(error)) from error


def _health_table(health: "Health") -> Pairs:
    from trainium_local.seeds.vcpu_quotas import seeded_quotas

    names = {quota.code: quota.name for quota in seeded_quotas()}
    rows = list[tuple[str, str]]()

    def add(label: str, value: str) -> None:
        rows.append((label, value))

    add("endpoint", health.endpoint)
    add("account", f"{health.account} (not a real one)")
    add("region", health.region)
    add("started", f"{health.started}, process {health.pid}")
    add("quotas", "\n".join(f"{code}  {value:4.0f} vCPU  {names[code]}" for code, value in health.quotas.items()))
    if health.no_capacity:
        add("no capacity", ", ".join(health.no_capacity))
    if health.fail_nodes:
        add("fail nodes", f"the first {health.fail_nodes} report a missing device")
    add("permissions", "IAM policies are enforced" if health.iam == "enforced" else "IAM is not enforced")
    add("types", f"{len(health.adapters)} resource types (see --json), and those that moto can create and delete")
    add("log", health.log)
    add("use", "trn local -- COMMAND: passes the server's access keys, which every request needs")
    return Pairs(rows=[(Text(label, "bold"), Text(value)) for label, value in rows])
