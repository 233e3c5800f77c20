"""`trn handoff bedrock`: whether Amazon Bedrock can import a checkpoint, and the role for it."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.lazy_group import CommandGroup
from trainium_cli.terminal import console, echo, print_json, say, shell_lines, table
from trainium_core.evidence.bedrock import (
    CheckpointFinding,
    check_checkpoint,
    import_facts,
    role_policy,
    trust_policy,
)

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>[^\s*?]+)")
_EXAMPLE_ACCOUNT = "111122223333"


def _location(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, str]:
    found = _S3_URI.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not of the form s3://BUCKET/PREFIX")
    return found["bucket"], found["prefix"].rstrip("/") + "/"


def _account(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", value):
        raise click.BadParameter(f"{value!r} is not a 12-digit account ID")
    return value


@click.group(cls=CommandGroup)
def handoff() -> None:
    """Check what a pilot hands over.

    `bedrock` checks a checkpoint before Amazon Bedrock imports it.
    """


@handoff.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--region", default="us-east-1", help="Region of the import. Default: us-east-1.")
@click.option(
    "--s3",
    "location",
    metavar="s3://BUCKET/PREFIX",
    callback=_location,
    default="s3://amzn-s3-demo-bucket/checkpoint/",
    help="Present or future location of the checkpoint in S3, for the policies and commands.",
)
@click.option(
    "--account",
    metavar="ACCOUNT",
    callback=_account,
    default=_EXAMPLE_ACCOUNT,
    help="Your account ID, for the policies.",
)
@json_option
@pass_invocation
def bedrock(invocation: Invocation, folder: Path, region: str, location: tuple[str, str], account: str) -> ExitCode:
    """Check a checkpoint against the requirements of Bedrock's model import.

    Reads the files in DIR and sends no request to AWS. Shows the policies of the role that the import needs, and the
    commands of the AWS CLI that start it. `trn destroy` and `trn audit` do not cover imported models: delete them
    yourself.

    Exit code 0: nothing found. 1: the import does not support it. 3: no source says whether it does.
    """
    found = check_checkpoint(folder, region)
    trust, role = trust_policy(account, region), role_policy(*location, account)
    if invocation.as_json:
        source = {"source": import_facts()["source"], "date": str(import_facts()["date"])}
        findings = [asdict(one) for one in found]
        print_json({"findings": findings, "trust_policy": trust, "role_policy": role, **source})
    else:
        _show(found)
        _show_role(trust, role, f"s3://{location[0]}/{location[1]}", folder, region)
    statuses = {one.status for one in found}
    if "fail" in statuses:
        return ExitCode.NOT_READY
    return ExitCode.UNKNOWN if "look" in statuses else ExitCode.OK


def _show(found: Sequence[CheckpointFinding]) -> None:
    out = console()
    rows = [(one.check, one.status, one.message) for one in found]
    out.print(table(["Check", "Status", "Found"], rows, wrapping=["Found"]))
    say(f"\n{import_facts()['source']}, read {import_facts()['date']}. Nothing was imported.")


def _show_role(trust: object, role: object, location: str, folder: Path, region: str) -> None:
    say(f"\nThe role of the import, according to {import_facts()['role_guide']}\n\nTrust policy:")
    echo(json.dumps(trust, indent=2))
    say("\nPolicy:")
    echo(json.dumps(role, indent=2))
    say("\nTo import it:\n")
    for command in (
        f"aws s3 sync {quote(str(folder))} {location}",
        f"aws bedrock create-model-import-job --region {region} --job-name NAME --imported-model-name NAME "
        f"--role-arn ROLE_ARN --model-data-source 's3DataSource={{s3Uri={location}}}'",
        f"aws bedrock delete-imported-model --region {region} --model-identifier NAME",
    ):
        echo(shell_lines(command))
    say("\nA model is billed per custom model unit, from its first call on. The last command deletes it.")
