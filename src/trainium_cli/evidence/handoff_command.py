"""`trn handoff bedrock`: checks whether Amazon Bedrock can import a checkpoint, and starts the import."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.lazy_group import CommandGroup
from trainium_cli.terminal import console, echo, print_json, question, say, shell_lines, table
from trainium_cli.waiting import waiting
from trainium_core.evidence.aws_bedrock import FAILED, AwsModelImport, CheckpointInS3, ImportJob
from trainium_core.evidence.bedrock import (
    CheckpointFinding,
    CheckpointFolder,
    check_checkpoint,
    import_facts,
    role_policy,
    trust_policy,
)
from trainium_core.plan import Plan
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>[^\s*?]+)")
_MODEL_NAME = re.compile(r"(?=.{1,63}$)([0-9a-zA-Z][_-]?)+")
_ROLE = re.compile(r"arn:aws(-[^:]+)?:iam::[0-9]{12}:role/.+")
_DEFAULT_REGION = "us-east-1"
_LONGEST_JOB_NAME = 63
_BILLED = "A model is billed per custom model unit while copies of it run, from its first call on."
_EXAMPLE_ACCOUNT = "111122223333"


def _location(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, str]:
    return _of_uri(value)


def _of_uri(value: str) -> tuple[str, str]:
    """The bucket, and the prefix, which ends with a slash. Raises click.BadParameter."""
    match = _S3_URI.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not of the form s3://BUCKET/PREFIX")
    return match["bucket"], match["prefix"].rstrip("/") + "/"


def _checkpoint(_ctx: click.Context, _param: click.Parameter, value: str) -> Path | tuple[str, str]:
    if value.startswith("s3://"):
        return _of_uri(value)
    if not Path(value).is_dir():
        raise click.BadParameter(f"{value!r} is not a folder, and not of the form s3://BUCKET/PREFIX")
    return Path(value)


def _matching(
    form: re.Pattern[str], allowed: str
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    def check(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        if value is not None and not form.fullmatch(value):
            raise click.BadParameter(f"{value!r} is not {allowed}")
        return value

    return check


def _account(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", value):
        raise click.BadParameter(f"{value!r} is not a 12-digit account ID")
    return value


@click.group(cls=CommandGroup)
def handoff() -> None:
    """Hand a trained model over to another service.

    `bedrock` checks a checkpoint, and with --go imports it into Amazon Bedrock.
    """


@handoff.command()
@click.argument("checkpoint", metavar="DIR|s3://BUCKET/PREFIX", callback=_checkpoint)
@click.option(
    "--region",
    metavar="REGION",
    help=f"Region of the import. Default: that of the plan with --go, else {_DEFAULT_REGION}.",
)
@click.option(
    "--s3",
    "location",
    metavar="s3://BUCKET/PREFIX",
    callback=_location,
    default="s3://amzn-s3-demo-bucket/checkpoint/",
    help="Future location in S3 of the checkpoint in DIR, for the policies and commands. Default: an example.",
)
@click.option(
    "--account",
    metavar="ACCOUNT",
    callback=_account,
    default=_EXAMPLE_ACCOUNT,
    help="Your account ID, for the policies. Default: an example.",
)
@click.option("--go", is_flag=True, help="Start the import of a checkpoint in S3, after confirmation.")
@click.option(
    "--role",
    metavar="ARN",
    callback=_matching(_ROLE, "the ARN of an IAM role"),
    help="With --go: the role that the import assumes.",
)
@click.option(
    "--name",
    metavar="NAME",
    callback=_matching(
        _MODEL_NAME,
        "a model name: up to 63 letters, digits, and single hyphens or underscores between them",
    ),
    help="With --go: the name of the imported model.",
)
@click.option("--yes", is_flag=True, help="With --go: do not ask for confirmation, for scripts.")
@plan_options
@pass_invocation
def bedrock(
    invocation: Invocation,
    checkpoint: Path | tuple[str, str],
    region: str | None,
    location: tuple[str, str],
    account: str,
    go: bool,
    role: str | None,
    name: str | None,
    yes: bool,
) -> ExitCode:
    """Check a checkpoint against the requirements of Bedrock's model import.

    Reads the configuration and the headers of the weights in DIR, or in S3. Without --go, shows the policies of the
    role that the import needs and the AWS CLI commands that start it, and imports nothing.

    --go starts the import in the region of the plan. The model gets the tag trn:cluster, so that `trn audit` and
    `trn destroy` list it. They do not delete it: delete it yourself.

    Exit code 0: every check passed, or the import was started. 1: a check failed, Bedrock refused the import, the
    import failed at once, or you declined. 3: it is unclear whether imports support the checkpoint, or a request to
    AWS failed.
    """
    plan = _import_plan(invocation, checkpoint, region, role, name, yes=yes) if go else None
    region = plan.region if plan else region or _DEFAULT_REGION
    if isinstance(checkpoint, tuple):
        location = checkpoint
        with waiting("Reading the checkpoint in S3 ..."):
            findings = check_checkpoint(CheckpointInS3(region, *location, invocation.clients), region)
    else:
        findings = check_checkpoint(CheckpointFolder(checkpoint), region)
    uri = f"s3://{location[0]}/{location[1]}"
    statuses = {finding.status for finding in findings}
    started = None
    if not invocation.as_json:
        _show(findings)
    if plan is not None and role is not None and name is not None and "fail" not in statuses:
        if not yes:
            click.confirm(question(f"\nImport {uri} into Bedrock in {region} as {name}?"), abort=True)
        started = _start(AwsModelImport(region, clients=invocation.clients), plan, name, role, uri)
    trust, policy = trust_policy(account, region), role_policy(*location, account)
    if invocation.as_json:
        source = {"source": import_facts()["source"], "date": str(import_facts()["date"])}
        rows = [asdict(finding) for finding in findings]
        job = None if started is None else asdict(started)
        print_json({"findings": rows, "trust_policy": trust, "role_policy": policy, "job": job, **source})
    elif started is not None:
        _show_started(started, name or "", region)
    else:
        _show_role(trust, policy, uri, checkpoint if isinstance(checkpoint, Path) else None, region)
    if "fail" in statuses:
        return ExitCode.NOT_READY
    if started is not None:
        return ExitCode.NOT_READY if started.status == FAILED else ExitCode.OK
    return ExitCode.UNKNOWN if "look" in statuses else ExitCode.OK


def _import_plan(
    invocation: Invocation,
    checkpoint: Path | tuple[str, str],
    region: str | None,
    role: str | None,
    name: str | None,
    *,
    yes: bool,
) -> Plan:
    """The plan of an import.

    Raises:
        click.UsageError: Options are missing, or contradict each other.
        PlanError: The plan is not valid.
    """
    if isinstance(checkpoint, Path):
        raise click.UsageError("--go needs a checkpoint in S3: upload it, and give s3://BUCKET/PREFIX")
    missing = [option for option, value in (("--role", role), ("--name", name)) if value is None]
    if missing:
        raise click.UsageError(f"--go needs {' and '.join(missing)}")
    if invocation.as_json and not yes:
        raise click.UsageError("--json does not prompt: pass --yes as well")
    plan = invocation.plan()
    if region not in (None, plan.region):
        raise click.UsageError(
            f"--region {region} is not the region of the plan, {plan.region}; leave it out with --go"
        )
    return plan


def _start(bedrock: AwsModelImport, plan: Plan, name: str, role: str, uri: str) -> ImportJob:
    """Start the import. Raises CliError if Bedrock refuses it."""
    job_name = f"{name}-{datetime.now(UTC):%Y%m%d%H%M%S}"[-_LONGEST_JOB_NAME:].lstrip("-_").replace("_", "-")
    try:
        arn = bedrock.start(name=name, job_name=job_name, role=role, location=uri, cluster=plan.cluster_name)
    except RequestRefusedError as error:
        listing = f"aws bedrock list-model-import-jobs --region {plan.region}"
        message = f"Not imported: {error}. `{listing}` shows whether a job exists."
        raise CliError(message, ExitCode.NOT_READY) from error
    try:
        return bedrock.job(arn)
    except UnavailableError:
        return ImportJob(arn=arn, status="unknown")


def _show(findings: Sequence[CheckpointFinding]) -> None:
    out = console()
    rows = [(finding.check, finding.status, finding.message) for finding in findings]
    out.print(table(["Check", "Status", "Found"], rows, wrapping=["Found"]))
    say(f"\n{import_facts()['source']}, read {import_facts()['date']}.")


def _show_role(trust: object, role: object, location: str, folder: Path | None, region: str) -> None:
    say(f"\nNothing was imported. The role of the import, according to {import_facts()['role_guide']}\n\nTrust policy:")
    echo(json.dumps(trust, indent=2))
    say("\nPolicy:")
    echo(json.dumps(role, indent=2))
    say("\nTo import the checkpoint from S3, use --go with --role and --name, or these commands:\n")
    for command in (
        *([f"aws s3 sync {quote(str(folder))} {location}"] if folder else []),
        f"aws bedrock create-model-import-job --region {region} --job-name NAME --imported-model-name NAME "
        f"--role-arn ROLE_ARN --model-data-source 's3DataSource={{s3Uri={location}}}'",
        f"aws bedrock delete-imported-model --region {region} --model-identifier NAME",
    ):
        echo(shell_lines(command))
    say(f"\n{_BILLED} The last command deletes the model.")


def _show_started(job: ImportJob, name: str, region: str) -> None:
    failure = f": {job.failure}" if job.failure else ""
    say(
        f"\nStarted {job.arn}: {job.status}{failure}. Whether the import succeeds is not known yet. To see its state:\n"
    )
    echo(shell_lines(f"aws bedrock get-model-import-job --region {region} --job-identifier {job.arn}"))
    say(f"\n{_BILLED} To delete the model:\n")
    echo(shell_lines(f"aws bedrock delete-imported-model --region {region} --model-identifier {name}"))
