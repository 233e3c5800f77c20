"""`trn support`: writes an archive of structured records for a support request; raw logs only on request."""

import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from os import open as open_file
from pathlib import Path

import click

from trainium_cli.cluster.audit_report import audit_as_json
from trainium_cli.cluster_choice import cluster_stack_name, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options, stack_option
from trainium_cli.terminal import console, echo, print_json, table
from trainium_cli.waiting import waiting
from trainium_core.audit.aws_account import AwsAuditedAccount
from trainium_core.audit.runner import audit
from trainium_core.aws.account import AwsAccount
from trainium_core.engines.ec2.aws_jobs import ClusterJobs
from trainium_core.engines.ec2.engine import EC2
from trainium_core.jobs.engine import NoStackError
from trainium_core.jobs.record import attempt_records
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.plan import Plan
from trainium_core.problems import PlanError
from trainium_core.support.archive import Part, SupportFiles, gather, write_archive
from trainium_core.support.aws_support import AwsSupport
from trainium_core.support.parts import account_parts, as_json, log_parts, problems_part, settings_part

_PACKAGES = ("trainium-cdk", "aws-cdk-lib", "constructs", "boto3", "botocore", "moto")
_PROGRAMS = (("cdk", "--version"), ("node", "--version"))
_SECONDS = 20
_MAX_JOBS = 20


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write. Default: trn-support-TIME.tar.gz in the working directory.",
)
@click.option(
    "--include-logs",
    is_flag=True,
    help="Add raw logs of functions and nodes, and console output. They may contain secrets.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@stack_option
@plan_options
@pass_invocation
def support(invocation: Invocation, stack: str | None, output: Path | None, include_logs: bool, yes: bool) -> ExitCode:
    """Write an archive for a support request.

    Nothing is sent. The archive contains structured records: settings, versions, preflight findings, stack events,
    scaling activities, records of nodes and of the last jobs, and the audit. --include-logs adds raw logs and console
    output, after showing their names and sizes and asking for confirmation.

    Parts that could not be read are listed with the reason. If settings have mistakes, the archive names them.

    Exit code 0: written. 1: declined, or no cluster was found. 2: no cluster was selected, or the file cannot be
    written. 3: AWS could not be read to find the cluster.
    """
    if include_logs:
        invocation.require_yes(yes)
    now = datetime.now(UTC)
    with waiting("Reading events and records from AWS ..."):
        gathered = gather([*_parts(invocation, stack, include_logs=include_logs)])
    folder = f"trn-support-{now:%Y%m%dT%H%M%SZ}"
    file = output or Path(f"{folder}.tar.gz")
    if not invocation.as_json:
        _show(gathered)
    if include_logs and not yes and not click.confirm("Write these files, with logs that may contain secrets?"):
        echo("Nothing was written.", err=True)
        return ExitCode.NOT_READY
    try:
        with open(file, "wb", opener=lambda path, flags: open_file(path, flags, 0o600)) as out:
            out.write(write_archive(gathered, folder=folder, made=now))
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}", ExitCode.BAD_INPUT) from error
    if invocation.as_json:
        print_json({"file": str(file), "files": list(gathered.files), "unavailable": gathered.unavailable})
    else:
        console().print(f"\n{file}: review it before you send it; nothing was sent.")
    return ExitCode.OK


def _parts(invocation: Invocation, given_stack: str | None, *, include_logs: bool) -> Iterator[Part]:
    yield Part(name="versions.txt", gather=_versions)
    try:
        if invocation.has_plan:
            invocation.plan()
    except PlanError as error:
        yield problems_part(error)
    try:
        plan = read_cluster_plan(invocation)
    except PlanError:
        return
    yield settings_part(plan)
    stack = cluster_stack_name(invocation, plan, given_stack)
    stacks = list(dict.fromkeys([stack, *(plan.stack_names[key] for key in plan.stacks if key != EC2.key)]))
    nodes, history = AwsNodes(plan.region), AwsSupport(plan.region)
    yield from account_parts(
        plan,
        stacks,
        account=AwsAccount(plan.region),
        qualifier=invocation.bootstrap_qualifier,
        nodes=nodes,
        history=history,
        node_stack=stack,
    )
    yield Part(name="jobs.json", gather=lambda: _jobs(invocation, plan, stack))
    yield Part(name="audit.json", gather=lambda: _audit(invocation, plan, stacks))
    if include_logs:
        yield from log_parts(plan, stacks, nodes=nodes, history=history, node_stack=stack)


def _jobs(invocation: Invocation, plan: Plan, stack: str) -> str:
    """The records of the newest jobs, without prices."""
    try:
        states = ClusterJobs(plan, stack, invocation.clients).newest(_MAX_JOBS)
    except NoStackError:
        states = ()
    return as_json({state.job.id: list(attempt_records(state, None)) for state in states})


def _audit(invocation: Invocation, plan: Plan, stacks: Sequence[str]) -> str:
    account = AwsAuditedAccount(plan.region, clients=invocation.clients)
    return as_json(audit_as_json(audit(plan, account, stack_names=stacks, now=datetime.now(UTC))))


def _versions() -> str:
    lines = [
        *(f"{name} {_version(name)}" for name in _PACKAGES),
        f"Python {sys.version.split()[0]}",
        f"system {platform.platform()}",
        *(f"{' '.join(program)}: {_program_output(program)}" for program in _PROGRAMS),
    ]
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _program_output(program: Sequence[str]) -> str:
    try:
        ran = subprocess.run(program, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({type(error).__name__})"
    return " ".join(ran.stdout.split())[:100]


def _show(gathered: SupportFiles) -> None:
    rows = [(name, f"{len(text.encode()):,}") for name, text in sorted(gathered.files.items())]
    console().print(table(("File", "Bytes"), rows, right=("Bytes",)))
    for why in dict.fromkeys(gathered.unavailable.values()):
        names = ", ".join(name for name, reason in gathered.unavailable.items() if reason == why)
        console().print(f"Not available: {names}: {why}")
