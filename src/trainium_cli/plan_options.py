"""The options by which a command is given a plan, and the messages about mistakes in it."""

from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from trainium_cli.completion_values import complete_setting
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import print_json
from trainium_core.problems import PlanError

if TYPE_CHECKING:
    from trainium_core.plan import Plan

Command = TypeVar("Command", bound=Callable[..., Any])

IRRELEVANT_LATER = ("setup_script",)
"""Settings that may have become wrong since the deployment, and do not matter for what is deployed."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")

changed_file_option = click.option(
    "--file",
    "cdk_json",
    type=click.Path(path_type=Path),
    default=Path("cdk.json"),
    help="The cdk.json to change. Default: the one of the working directory.",
)


def plan_options(command: Command) -> Command:
    """-c, --file and --json."""
    return context_options(json_option(command))


def context_options(command: Command) -> Command:
    """-c and --file."""
    command = click.option(
        "--file",
        "cdk_json",
        type=click.Path(path_type=Path),
        help="The cdk.json to read. Default: the one of the working directory.",
    )(command)
    return click.option(
        "-c",
        "--context",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=complete_setting,
        help="Override a setting, as with cdk: -c trn:nodes=4. Can be repeated.",
    )(command)


def read_plan(
    cdk_json: Path | None, overrides: tuple[str, ...], *, as_json: bool, ignoring: Collection[str] = ()
) -> "Plan":
    """The plan that the options describe; ends the command with every problem if it is not a good one.

    ignoring: settings that do not matter to the command; their defaults are taken.
    """
    # Imported here: commands that have --json and no plan import this module too.
    from trainium_core.plan.context import plan_from_file

    try:
        return plan_from_file(cdk_json, overrides, ignoring=ignoring)
    except PlanError as error:
        refuse(error, as_json=as_json)


def refuse(error: PlanError, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"problems": [asdict(problem) for problem in error.problems]})
    click.echo(str(error).rstrip(), err=True)
    raise click.exceptions.Exit(ExitCode.BAD_INPUT)
