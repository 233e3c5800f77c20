"""`trn doctor`: what this machine and the account lack for a first deployment."""

import json
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click
from rich.text import Text

from trainium_cli.cdk_program import cdk_path, is_supported_node, node_version, tool_path
from trainium_cli.cluster_choice import configured_region
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options, region_option
from trainium_cli.setup.tool_install import install_missing_tools
from trainium_cli.terminal import console, print_json, table
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.facts import facts
from trainium_core.preflight.stack_checks import toolkit_bootstrap
from trainium_core.problems import PlanError
from trainium_runtime.errors import OfflineError, UnavailableError

_FIX = "run `trn doctor --fix`"
_STYLE = {"pass": "green", "warn": "yellow", "fail": "red", "unknown": "magenta"}


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The result of one check. The fix may be empty."""

    what: str
    outcome: Literal["pass", "warn", "fail", "unknown"]
    found: str
    fix: str = ""


@click.command()
@click.option("--fix", is_flag=True, help="First install Node.js and the CDK CLI if they are missing.")
@region_option("Region of the bootstrap stack.")
@plan_options
@pass_invocation
def doctor(invocation: Invocation, fix: bool) -> ExitCode:
    """Show what this machine and the account lack.

    Checks Node.js and the CDK CLI (needed for a deployment), the AWS CLI and its Session Manager plugin (for a shell on
    a node), credentials, and the CDK bootstrap stack. Also shows the version of Python.

    --fix installs Node.js from PyPI and the CDK CLI from the npm registry, in the versions that this package is tested
    with, into the virtual environment of `trn`. Node.js also counts as missing without npm, or in a version that is not
    tested.

    Exit code 0: nothing that a deployment needs is missing; there may be warnings. 1: something is missing or
    does not work, or an installation failed. 2: bad usage, or `trn` would have to install into the system Python.
    3: unknown.
    """
    folder = (invocation.cdk_json.parent if invocation.cdk_json else Path()).absolute()
    if fix:
        install_missing_tools(folder)
    diagnoses = [*_machine(folder)]
    with waiting("Asking AWS for the account ..."):
        diagnoses += _account(configured_region(invocation), invocation)
    outcomes = {diagnosis.outcome for diagnosis in diagnoses}
    if invocation.as_json:
        print_json([asdict(diagnosis) for diagnosis in diagnoses])
    else:
        rows = [(one.what, Text(one.outcome, style=_STYLE[one.outcome]), _shown(one)) for one in diagnoses]
        console().print(table(("What", "Outcome", "Found"), rows, wrapping=("Found",)))
    unknown = ExitCode.UNKNOWN if "unknown" in outcomes else ExitCode.OK
    return ExitCode.NOT_READY if "fail" in outcomes else unknown


def _shown(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.found}\n-> {diagnosis.fix}" if diagnosis.fix else diagnosis.found


def _machine(folder: Path) -> Iterator[Diagnosis]:
    yield Diagnosis(what="Python", outcome="pass", found=f"{platform.python_version()}, {sys.executable}")
    yield _node()
    cdk = cdk_path(folder)
    if cdk:
        yield _cdk_cli(cdk)
    else:
        yield Diagnosis(what="CDK CLI", outcome="fail", found="neither in node_modules nor on PATH", fix=_FIX)
    for what, program in (("AWS CLI", "aws"), ("Session Manager", "session-manager-plugin")):
        place = shutil.which(program)
        fix = "" if place else "a shell on a node needs it: see the guides of the AWS CLI and of Session Manager"
        found = place or f"{program} is not on PATH"
        yield Diagnosis(what=what, outcome="pass" if place else "warn", found=found, fix=fix)


def _node() -> Diagnosis:
    fix = f"{_FIX}, or install Node {facts()['nodejs']['majors'][-1]} (https://nodejs.org)"
    place = shutil.which("node", path=tool_path())
    if place is None:
        return Diagnosis(what="Node", outcome="fail", found="node, which the CDK requires, is not on PATH", fix=fix)
    version = node_version(place)
    if version is None:
        return Diagnosis(what="Node", outcome="fail", found=f"{place} does not run", fix=fix)
    if is_supported_node(version):
        return Diagnosis(what="Node", outcome="pass", found=f"{version}, {place}")
    return Diagnosis(what="Node", outcome="warn", found=f"{version or 'no version'}, {place}", fix=fix)


def _cdk_cli(place: str) -> Diagnosis:
    """Reads the version from the package of the CDK CLI, because `cdk --version` may use the network."""
    package: str = facts()["nodejs"]["cdk_cli"]
    tested = tuple(map(int, package.rpartition("@")[2].split(".")))
    try:
        described = json.loads((Path(place).resolve().parents[1] / "package.json").read_text(encoding="utf-8"))
        version = str(described["version"])
        is_older = tuple(map(int, version.split(".")[:3])) < tested
    except (OSError, ValueError, LookupError, TypeError):
        found, fix = f"{place}, whose version is unknown", f"make sure that it is {package} or newer"
        return Diagnosis(what="CDK CLI", outcome="warn", found=found, fix=fix)
    fix = f"older than the version tested with this package: npm install --global {package}" if is_older else ""
    return Diagnosis(what="CDK CLI", outcome="warn" if is_older else "pass", found=f"{version}, {place}", fix=fix)


def _account(region: str, invocation: Invocation) -> Iterator[Diagnosis]:
    account = AwsAccount(region)
    try:
        identity = account.identity()
    except UnavailableError as error:
        outcome = "unknown" if isinstance(error, OfflineError) else "fail"
        yield Diagnosis(what="credentials", outcome=outcome, found=str(error))
        yield Diagnosis(what="bootstrap", outcome="unknown", found="not checked: the account is unknown")
        return
    elsewhere = f", answered by {identity.endpoint}, not by AWS" if identity.endpoint else ""
    yield Diagnosis(what="credentials", outcome="pass", found=f"account {identity.account}, {identity.arn}{elsewhere}")
    try:
        bootstrap = toolkit_bootstrap(region, account, invocation.bootstrap_qualifier)
    except (PlanError, UnavailableError) as error:
        yield Diagnosis(what="bootstrap", outcome="unknown", found=str(error))
        return
    yield Diagnosis(
        what="bootstrap", outcome=bootstrap.outcome, found=f"{region}: {bootstrap.found}", fix=bootstrap.fix
    )
