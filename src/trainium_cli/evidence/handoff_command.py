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
from trainium_cli.waiting import waiting
from trainium_core.evidence.aws_bedrock import CheckpointInS3
from trainium_core.evidence.bedrock import (
    CheckpointFinding,
    CheckpointFolder,
    check_checkpoint,
    import_facts,
    role_policy,
    trust_policy,
)
from trainium_runtime.naming import CLUSTER_TAG

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>[^\s*?]+)")


def _location(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, str]:
    """Bucket and prefix, which ends with a slash."""
    uri = _S3_URI.fullmatch(value)
    if uri is None:
        raise click.BadParameter(f"{value!r} is not of the form s3://BUCKET/PREFIX")
    return uri["bucket"], uri["prefix"].rstrip("/") + "/"


def _checkpoint(context: click.Context, parameter: click.Parameter, value: str) -> Path | tuple[str, str]:
    if value.startswith("s3://"):
        return _location(context, parameter, value)
    if not Path(value).is_dir():
        raise click.BadParameter(f"{value!r} is not a folder, and not of the form s3://BUCKET/PREFIX")
    return Path(value)


def _account(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", value):
        raise click.BadParameter(f"{value!r} is not a 12-digit account ID")
    return value


@click.group(cls=CommandGroup)
def handoff() -> None:
    """Check what a pilot hands over.

    `bedrock` checks a checkpoint for Amazon Bedrock's model import.
    """


@handoff.command()
@click.argument("checkpoint", metavar="DIR|s3://BUCKET/PREFIX", callback=_checkpoint)
@click.option("--region", default="us-east-1", show_default=True, help="Region of the import.")
@click.option(
    "--s3",
    "location",
    metavar="s3://BUCKET/PREFIX",
    callback=_location,
    default="s3://amzn-s3-demo-bucket/checkpoint/",
    help="Future location in S3 of the checkpoint in DIR, for the policies and commands.",
)
@click.option(
    "--account",
    metavar="ACCOUNT",
    callback=_account,
    default="111122223333",
    help="Your account ID, for the policies.",
)
@json_option
@pass_invocation
def bedrock(
    invocation: Invocation,
    checkpoint: Path | tuple[str, str],
    region: str,
    location: tuple[str, str],
    account: str,
) -> ExitCode:
    """Check a checkpoint against the requirements of Bedrock's model import.

    Reads the files in DIR, or in S3: configuration, and the headers of the weights. Shows the policies of the role that
    the import needs, and the commands of the AWS CLI that start it. Nothing is imported.

    Exit code 0: nothing found. 1: the import does not support it. 3: no source says whether it does.
    """
    if isinstance(checkpoint, tuple):
        location = checkpoint
        with waiting("Reading the checkpoint in S3 ..."):
            findings = check_checkpoint(CheckpointInS3(region, *location, invocation.clients), region)
    else:
        findings = check_checkpoint(CheckpointFolder(checkpoint), region)
    trust, policy = trust_policy(account, region), role_policy(*location, account)
    if invocation.as_json:
        source = {"source": import_facts()["source"], "date": str(import_facts()["date"])}
        rows = [asdict(finding) for finding in findings]
        print_json({"findings": rows, "trust_policy": trust, "role_policy": policy, **source})
    else:
        _show_findings(findings)
        folder = checkpoint if isinstance(checkpoint, Path) else None
        _show_role(trust, policy, f"s3://{location[0]}/{location[1]}", folder, region)
    statuses = {finding.status for finding in findings}
    if "fail" in statuses:
        return ExitCode.NOT_READY
    return ExitCode.UNKNOWN if "look" in statuses else ExitCode.OK


def _show_findings(findings: Sequence[CheckpointFinding]) -> None:
    rows = [(finding.check, finding.status, finding.message) for finding in findings]
    console().print(table(["Check", "Status", "Found"], rows, wrapping=["Found"]))
    say(f"\n{import_facts()['source']}, read {import_facts()['date']}.")


def _show_role(trust: object, role: object, location: str, folder: Path | None, region: str) -> None:
    say(f"\nThe role of the import, according to {import_facts()['role_guide']}\n\nTrust policy:")
    echo(json.dumps(trust, indent=2))
    say("\nPolicy:")
    echo(json.dumps(role, indent=2))
    say("\nTo import it:\n")
    for command in (
        *([f"aws s3 sync {quote(str(folder))} {location}"] if folder else []),
        f"aws bedrock create-model-import-job --region {region} --job-name NAME --imported-model-name NAME "
        f"--role-arn ROLE_ARN --model-data-source 's3DataSource={{s3Uri={location}}}' "
        f"--imported-model-tags key={CLUSTER_TAG},value=CLUSTER",
        f"aws bedrock delete-imported-model --region {region} --model-identifier NAME",
    ):
        echo(shell_lines(command))
    say(
        "\nA model is billed per custom model unit, from its first call on. The last command deletes it. With the tag, "
        "`trn audit` and `trn destroy` list it."
    )
