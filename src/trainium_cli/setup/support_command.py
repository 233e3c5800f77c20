"""`trn support`: one archive with what whoever helps needs to see, without secrets."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from botocore.exceptions import BotoCoreError

import trainium_runtime
from trainium_cli.cluster_selection import read_cluster_plan, settings_of_a_plan, stack_of_cluster, stack_option
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import plan_options
from trainium_cli.terminal import console, print_json, table
from trainium_cli.waiting import waiting
from trainium_core.engines.ec2 import EC2
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.plan import Plan
from trainium_core.plan.context import plan_from_file
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.problems import PlanError
from trainium_core.support.archive import Part, SupportFiles, gather, write_archive
from trainium_core.support.aws_support import AwsSupport
from trainium_core.support.masking import Masking, secrets_of_environment, secrets_of_script
from trainium_core.support.parts import account_parts, problems_part, settings_part
from trainium_runtime.aws_session import AwsSession
from trainium_userdata.node import trn_node

_PACKAGES = ("trainium-cdk", "aws-cdk-lib", "constructs", "boto3", "botocore", "moto")
_PROGRAMS = (("cdk", "--version"), ("node", "--version"))
_SECONDS = 20


@click.command()
@plan_options
@stack_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write. Default: trn-support-TIME.tar.gz in the working directory.",
)
def support(
    overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, stack: str | None, output: Path | None
) -> None:
    """Write an archive with what whoever helps needs to see.

    It is sent nowhere. In it: settings, versions, preflight's findings, events of the stacks, records, logs and
    consoles of nodes, ends of the functions' logs. Secrets, account ids and e-mail addresses are masked, as far as
    they look like such: look through the files before you send them.

    What the account does not return is named with the reason, and the rest is there. Exit code 0: an archive was
    written. 2: not one that can be written there.
    """
    now = datetime.now(UTC)
    plan, problems = _plan(cdk_json, overrides)
    if problems and not settings_of_a_plan(cdk_json, overrides):
        plan, problems = read_cluster_plan(cdk_json, overrides, as_json=as_json), None
    parts = [Part(name="versions.txt", gather=_versions), _settings(plan, problems)]
    if plan:
        stack = stack_of_cluster(plan, stack)
        stacks = list(dict.fromkeys([stack, *(plan.stack_names[key] for key in plan.stacks if key != EC2.key)]))
        account, nodes, history = AwsAccount(plan.region), AwsNodes(plan.region), AwsSupport(plan.region)
        parts += account_parts(plan, stacks, account=account, nodes=nodes, history=history, node_stack=stack)
    secrets = secrets_of_environment(os.environ) | _credentials()
    if plan and plan.setup_script:
        secrets |= secrets_of_script(plan.setup_script)
    with waiting("Asking AWS for what the stacks have said"):
        gathered = gather(parts, Masking(secrets))
    folder = f"trn-support-{now:%Y%m%dT%H%M%SZ}"
    file = output or Path(f"{folder}.tar.gz")
    try:
        with open(file, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(write_archive(gathered, folder=folder, made=now))
    except OSError as error:
        click.echo(f"{file}: {error.strerror}", err=True)
        raise click.exceptions.Exit(ExitCode.BAD_INPUT) from error
    _show(gathered, file, as_json=as_json)


def _plan(cdk_json: Path | None, overrides: Sequence[str]) -> tuple[Plan | None, PlanError | None]:
    try:
        return plan_from_file(cdk_json, overrides), None
    except PlanError as error:
        return None, error


def _settings(plan: Plan | None, problems: PlanError | None) -> Part:
    if plan:
        return settings_part(plan)
    assert problems
    return problems_part(problems)


def _credentials() -> set[str]:
    """Those that AWS is asked with."""
    try:
        found = AwsSession().get_credentials()
    except BotoCoreError:
        return set()
    return {value for value in (found.access_key, found.secret_key, found.token) if value} if found else set()


def _versions() -> str:
    lines = [
        f"functions {trainium_runtime.__version__}",
        f"node program {trn_node.__version__}",
        *(f"{name} {_version(name)}" for name in _PACKAGES),
        f"Python {sys.version.split()[0]}",
        f"system {platform.platform()}",
        *(f"{' '.join(program)}: {_output_of(program)}" for program in _PROGRAMS),
    ]
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _output_of(program: Sequence[str]) -> str:
    try:
        ran = subprocess.run(program, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({type(error).__name__})"
    return " ".join(ran.stdout.split())[:100]


def _show(gathered: SupportFiles, file: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(file), "files": list(gathered.files), "unavailable": gathered.unavailable})
        return
    rows = [(name, f"{len(text.encode()):,}") for name, text in sorted(gathered.files.items())]
    console().print(table(("File", "Bytes"), rows, right=("Bytes",)))
    for why in dict.fromkeys(gathered.unavailable.values()):
        names = ", ".join(name for name, reason in gathered.unavailable.items() if reason == why)
        console().print(f"Not available: {names}: {why}")
    console().print(f"\n{file}: look through it before you send it; nothing was sent anywhere.")
