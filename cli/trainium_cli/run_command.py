"""`trn run`: pack a training script, start it on every node of the cluster, and follow it to its result."""

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from trainium_cli.cluster_selection import read_cluster_plan, stack_of_cluster
from trainium_cli.exit_codes import ExitCode
from trainium_cli.job_cluster import cluster_jobs, job_cluster_options
from trainium_cli.job_following import job_exit_code
from trainium_cli.job_report import node_script
from trainium_cli.job_submission import fetch_outputs, submit_and_follow
from trainium_cli.plan_options import IRRELEVANT_LATER, refuse
from trainium_cli.sleep_switching import switch
from trainium_cli.suppress_option import suppress_option
from trainium_cli.terminal import print_json
from trainium_core.engines.sagemaker.job_checks.preflight import JOB_CHECKS
from trainium_core.jobs.job import Job, new_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import PLACES, SAGEMAKER, JobRequest, job_request, read_job_file
from trainium_core.jobs.source_package import SourcePackage, pack_directory, pack_source
from trainium_core.plan import Plan
from trainium_runtime.errors import UnavailableError

_JOB_FILE = ".toml"
_SHOWN_KEYS = {
    "script": "SCRIPT",
    "arguments": "ARGUMENTS",
    "environment": "--env",
    "secrets": "--secret",
    "inputs": "--input",
    "retry_on_exit_codes": "--retry-on-exit-code",
}


def _pairs(_ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str] | None:
    split = [text.partition("=") for text in given]
    for text, (name, separator, _) in zip(given, split, strict=True):
        if not separator or not name:
            raise click.BadParameter(f"{text!r} is not {param.metavar}")
    return {name: value for name, _, value in split} or None


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--on", type=click.Choice(PLACES), help="Where it runs. Default: cluster.")
@click.option("--source", help="Directory that is packed with the script. Default: the script alone.")
@click.option("--name", help="What the job's id begins with. Default: the script's name.")
@click.option("--nodes", help="How many of the cluster's nodes. Default: all.")
@click.option("--setup", help="A bash command that each node runs once before, in the source directory.")
@click.option(
    "--env",
    "environment",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="Environment variable of the job. No secrets: they are stored in S3. Can be repeated.",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    callback=_pairs,
    metavar="NAME=ARN",
    help="Environment variable whose value the nodes read, out of trn:job_secrets. Can be repeated.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    callback=_pairs,
    metavar="NAME=PLACE",
    help="Data that each node fetches before: an S3 URL in trn:job_inputs, or a path. Can be repeated.",
)
@click.option(
    "--checkpoints", metavar="S3URL", help="Folder that checkpoints are kept in. Default: trn:job_checkpoints."
)
@click.option("--retries", help="How often it is started again after the loss of a node. Default: 2.")
@click.option(
    "--retry-on-exit-code",
    "retry_on_exit_codes",
    multiple=True,
    metavar="CODE",
    help="Exit code of the script after which it is started again, too. Can be repeated.",
)
@click.option("--hang-minutes", help="Minutes without any output after which it counts as hung. Default: never.")
@click.option("--time-limit-minutes", help="Minutes that the job may take, with its restarts. Default: no limit.")
@click.option("--resume", metavar="JOB", help="Go on from the last checkpoint of an earlier job.")
@click.option("--outputs", type=click.Path(path_type=Path), help="Folder to fetch the job's outputs into at its end.")
@click.option("--wake", is_flag=True, help="Wake the cluster before, and put it to sleep when the job is over.")
@click.option("--dry-run", is_flag=True, help="Show what each node would execute, and start nothing.")
@click.option("--detach", is_flag=True, help="Do not follow the job.")
@click.option("--yes", is_flag=True, help="Wake the cluster, or start on SageMaker, without asking, for scripts.")
@suppress_option(JOB_CHECKS, meaning="With --on sagemaker: do not ask this one, and say so.")
@job_cluster_options
def run(
    script: Path,
    arguments: tuple[str, ...],
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    stack: str | None,
    outputs: Path | None,
    wake: bool,
    dry_run: bool,
    detach: bool,
    yes: bool,
    suppressed: frozenset[str],
    **options: Any,
) -> None:
    """Run a training script on every node, and follow it to its result.

    SCRIPT, a path from here or in --source, runs under torchrun with one process for each NeuronCore of each node; what
    follows -- is given to it:

        trn run train.py --source . -- --epochs 3

    A SCRIPT that ends in .toml is a job file: it holds the options by their names, and options come before it.

    With --on sagemaker it is a training job of the same plan, for which `trn sagemaker` has list, logs and stop.

    One job at a time. It goes on when this command ends: Ctrl-C leaves it running. A node that is lost is replaced, and
    the job goes on from its last checkpoint.

    Exit code 0: the job succeeded. 1: it did not, or was not started. 3: could not tell, or left running.
    """
    if wake and detach:
        raise click.UsageError("--wake puts the cluster to sleep when the job is over: leave --detach out")
    try:
        request, given, shown = _request(script, arguments, options)
    except JobError as error:
        refuse(error, as_json=as_json)
    outputs = outputs or (Path(request.outputs) if request.outputs else None)
    if request.on == SAGEMAKER:
        if wake or outputs:
            raise click.UsageError("--wake and --outputs are of the cluster: leave them out with --on sagemaker")
        # Imported here: who runs on the cluster needs none of it.
        from trainium_cli.run_on_sagemaker import run_on_sagemaker

        run_on_sagemaker(
            request,
            given,
            shown,
            overrides=overrides,
            cdk_json=cdk_json,
            stack=stack,
            suppressed=suppressed,
            dry_run=dry_run,
            detach=detach,
            yes=yes,
            as_json=as_json,
        )
        return
    if suppressed:
        raise click.UsageError("--suppress is of SageMaker: leave it out, or add --on sagemaker")
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
    try:
        job, package = _new_job(plan, request)
    except JobError as error:
        refuse(error, as_json=as_json)
    if package.left_out:
        click.echo(f"Left out of the source: {', '.join(package.left_out)}", err=True)
    if dry_run:
        print_json(asdict(job)) if as_json else click.echo(node_script(job))
        return
    stack = stack_of_cluster(plan, stack)
    if wake:
        begun = time.monotonic()
        _switch(overrides, cdk_json, stack, asleep=False, yes=yes)
        job = replace(job, waking_seconds=round(time.monotonic() - begun, 1))
    try:
        state = submit_and_follow(plan, stack, job, package, uploads=request.uploads, detach=detach, as_json=as_json)
        if outputs is not None and state is not None:
            fetch_outputs(plan, stack, job.id, outputs)
    finally:
        # Also when it was not started. A job that goes on has to keep its nodes.
        if wake:
            _sleep_unless_running(plan, overrides, cdk_json, stack)
    raise click.exceptions.Exit(ExitCode.OK if detach else job_exit_code(state))


def _request(
    script: Path, arguments: tuple[str, ...], options: Mapping[str, Any]
) -> tuple[JobRequest, Mapping[str, Any], Mapping[str, str]]:
    """What is asked for, its raw values, and how each of these is called where it was given. Raises JobError."""
    of_options = {key: value for key, value in options.items() if value not in (None, ())}
    if arguments:
        of_options["arguments"] = arguments
    shown = {key: f"--{key.replace('_', '-')}" for key in options} | _SHOWN_KEYS
    of_file: dict[str, Any] = {"script": str(script)}
    if script.suffix == _JOB_FILE:
        of_file = read_job_file(script)
        # A problem of the file is shown with the file's own key.
        shown = {key: shown[key] for key in of_options}
    given = of_file | of_options
    return job_request(given, shown=shown), given, shown


def _new_job(plan: Plan, request: JobRequest) -> tuple[Job, SourcePackage]:
    """The job for the cluster, and its source. Raises JobError."""
    source = None if request.source is None else Path(request.source)
    package = pack_directory(source) if request.script is None else pack_source(request.script, source)
    script_there = package.script or None
    job = new_job(plan, request, script=script_there, now=datetime.now(UTC), source_sha256=package.digest)
    return job, package


def _switch(overrides: tuple[str, ...], cdk_json: Path | None, stack: str, *, asleep: bool, yes: bool) -> None:
    """Wake the cluster, or put it to sleep; ends the command when that fails."""
    try:
        switch(overrides, cdk_json, stack, asleep=asleep, yes=yes, grace=timedelta())
    except click.exceptions.Exit as ended:
        if ended.exit_code != ExitCode.OK:
            raise


def _sleep_unless_running(plan: Plan, overrides: tuple[str, ...], cdk_json: Path | None, stack: str) -> None:
    try:
        jobs = cluster_jobs(plan, stack)
        current = jobs.current() if jobs else None
        state = jobs.state(current.job.id) if jobs and current else None
    except UnavailableError as error:
        click.echo(f"{plan.cluster_name} stays awake and is billed: could not tell if a job runs: {error}", err=True)
        return
    if state is not None and not state.is_over:
        told = (
            f"{plan.cluster_name} stays awake and is billed: {state.job.id} goes on. Put it to sleep with `trn sleep`."
        )
        click.echo(told, err=True)
        return
    _switch(overrides, cdk_json, stack, asleep=True, yes=True)
