"""`trn sagemaker run`: pack, check, show, start and follow one training job."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.sagemaker_following import exit_code, follow_to_the_end
from trainium_cli.jobs.sagemaker_job_options import JobOptions, could_not_tell, job_of, job_options, read_job_plan
from trainium_cli.jobs.sagemaker_report import job_rows, state_as_json, state_rows
from trainium_cli.plan.plan_choices import suppress_option
from trainium_cli.plan.preflight_command import EXIT_CODES
from trainium_cli.plan.preflight_report import findings_as_json, findings_table
from trainium_cli.plan_options import plan_options, refuse
from trainium_cli.terminal import console, pairs, print_json, say
from trainium_cli.waiting import waiting
from trainium_core.engines.sagemaker.job_checks.aws_account import AwsSageMakerAccount
from trainium_core.engines.sagemaker.job_checks.preflight import JOB_CHECKS, job_preflight
from trainium_core.engines.sagemaker.jobs.aws_training_job_control import AwsTrainingJobControl
from trainium_core.engines.sagemaker.jobs.cost import job_estimate
from trainium_core.engines.sagemaker.jobs.follow import JobFollower
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.engines.sagemaker.jobs.run import checked_request, packed_job
from trainium_core.engines.sagemaker.jobs.source_channel import channel_files
from trainium_core.engines.sagemaker.jobs.training_jobs import JobUnknownError
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.source_package import SourcePackage, pack_source
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Finding, verdict
from trainium_runtime.errors import RequestRefusedError, UnavailableError


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    help="Directory that is packed with the script. Default: the script alone.",
)
@job_options
@plan_options
@suppress_option(JOB_CHECKS)
@click.option("--dry-run", is_flag=True, help="Print the request as JSON, checked, and start nothing.")
@click.option("--upload", is_flag=True, help="With --dry-run: upload the source, so that others can use the request.")
@click.option("--detach", is_flag=True, help="Do not follow the job.")
@click.option("--yes", is_flag=True, help="Start without asking you first, for scripts.")
def run(
    script: Path,
    arguments: tuple[str, ...],
    source: Path | None,
    options: JobOptions,
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    suppressed: frozenset[str],
    dry_run: bool,
    upload: bool,
    detach: bool,
    yes: bool,
) -> None:
    """Run a training script as a job.

    SCRIPT, a path from here or in --source, runs under torchrun with one process for each NeuronCore of each instance;
    what follows -- is given to it:

        trn sagemaker run train.py --source . -- --epochs 3

    The request is held against AWS's own model and the account is asked before anything is started. A check that has no
    answer starts nothing either, unless --suppress names it. Ctrl-C asks whether the job is to be stopped.

    Exit code 0: the job completed. 1: it failed, was stopped, or was not started. 3: could not tell. 130: left
    running, by Ctrl-C.
    """
    if as_json and not (yes or dry_run):
        raise click.UsageError("--json asks no questions: give --yes as well")
    if upload and not dry_run:
        raise click.UsageError("--upload goes with --dry-run: a job that is started has its source uploaded")
    plan = read_job_plan(cdk_json, overrides, as_json=as_json)
    try:
        package = pack_source(script, source)
    except JobError as error:
        refuse(error, as_json=as_json)
    train(
        plan,
        package,
        options,
        arguments,
        suppressed=suppressed,
        dry_run=dry_run,
        upload=upload,
        detach=detach,
        yes=yes,
        as_json=as_json,
    )


def train(
    plan: Plan,
    package: SourcePackage,
    options: JobOptions,
    arguments: tuple[str, ...],
    *,
    suppressed: frozenset[str],
    dry_run: bool,
    upload: bool,
    detach: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Check a job, show it, ask, start it and follow it; ends the command. suppressed: checks that do not count."""
    account = AwsSageMakerAccount(plan.region)
    try:
        job = packed_job(job_of(plan, options, package.script, arguments, account), package)
        request = checked_request(plan, job)
    except JobError as error:
        refuse(error, as_json=as_json)
    except UnavailableError as error:
        could_not_tell(error, "Nothing was started", as_json=as_json)
    if package.left_out:
        click.echo(f"Left out of the source: {', '.join(package.left_out)}", err=True)
    if upload:
        _upload(plan, job, package)
    if dry_run:
        print_json(request)
        return
    findings = _check_and_show(plan, job, package, account, suppressed, as_json=as_json)
    if verdict(findings) != "ready":
        _end_unready(findings, as_json=as_json)
    if not yes and not click.confirm("\nStart it?"):
        say("Nothing was started.")
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    _start(plan, job, package, request, as_json=as_json, detach=detach)


def _check_and_show(
    plan: Plan,
    job: TrainingJob,
    package: SourcePackage,
    account: AwsSageMakerAccount,
    suppressed: frozenset[str],
    *,
    as_json: bool,
) -> Sequence[Finding]:
    with waiting(f"Asking AWS in {plan.region} ..."):
        findings = job_preflight(plan, job, account, suppressed=suppressed)
        estimated = job_estimate(plan, job, aws=account)
    if not as_json:
        console().print(pairs(job_rows(plan, job, package, estimated), label_width=11))
        console().print()
        console().print(findings_table(findings))
    return findings


def _end_unready(findings: Sequence[Finding], *, as_json: bool) -> NoReturn:
    """A check without an answer is no reason to start; whoever accepts that says so by its name."""
    outcome = verdict(findings)
    if as_json:
        print_json({"started": False, **findings_as_json(findings)})
    unknown = [finding.check for finding in findings if finding.outcome == "unknown" and not finding.suppressed]
    message = f"{outcome}: nothing was started."
    if unknown and outcome == "unknown":
        message += f" To start all the same: {' '.join(f'--suppress {check}' for check in unknown)}"
    elif outcome == "unknown":
        message += " Every check was suppressed: leave one."
    click.secho(f"\n{message}", err=True, bold=True)
    raise click.exceptions.Exit(EXIT_CODES[outcome])


def _upload(plan: Plan, job: TrainingJob, package: SourcePackage) -> None:
    try:
        AwsTrainingJobControl(plan.region).upload(job.source_url, channel_files(package))
    except RequestRefusedError as error:
        click.echo(f"The source was not uploaded: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.NOT_READY) from error


def _start(
    plan: Plan, job: TrainingJob, package: SourcePackage, request: dict[str, object], *, as_json: bool, detach: bool
) -> None:
    control = AwsTrainingJobControl(plan.region)
    try:
        control.upload(job.source_url, channel_files(package))
        control.start(request)
    except RequestRefusedError as error:
        if as_json:
            print_json({"started": False, "reason": str(error)})
        click.echo(f"Nothing was started: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.NOT_READY) from error
    except (JobUnknownError, KeyboardInterrupt) as error:
        why = (
            f"AWS did not say whether it was started: {error}" if isinstance(error, JobUnknownError) else "Interrupted"
        )
        if as_json:
            print_json({"started": None, "reason": why})
        click.echo(f"{why}. See `trn sagemaker describe {job.name}` before you try again.", err=True)
        is_unknown = isinstance(error, JobUnknownError)
        raise click.exceptions.Exit(ExitCode.UNKNOWN if is_unknown else ExitCode.INTERRUPTED) from error
    click.echo(f"Started {job.name}.", err=True)
    if detach:
        if as_json:
            print_json({"started": True, "job": asdict(job)})
        else:
            say(f"`trn sagemaker logs {job.name} --follow` follows it.")
        return
    try:
        state = follow_to_the_end(JobFollower(job.name, control), control, quiet=as_json)
    except click.exceptions.Exit:  # left running
        if as_json:
            print_json({"started": True, "state": None})
        raise
    if as_json:
        print_json({"started": True, "state": state_as_json(state) if state else None})
    elif state:
        console().print()
        console().print(pairs(state_rows(state), label_width=11))
    raise click.exceptions.Exit(exit_code(state))
