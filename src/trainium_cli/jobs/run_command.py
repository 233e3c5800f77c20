"""`trn run`: pack a training script, start it on every node of the cluster, and follow it to its result."""

import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from trainium_cli.cluster.sleep_switching import switch
from trainium_cli.cluster_selection import read_cluster_plan, stack_of_cluster
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import going_on
from trainium_cli.invocation import Invocation
from trainium_cli.jobs.job_cluster import cluster_jobs, job_cluster_options
from trainium_cli.jobs.job_following import job_exit_code
from trainium_cli.jobs.job_options import as_given, packed_source, read_request, work_options
from trainium_cli.jobs.job_submission import fetch_outputs, submit_and_follow
from trainium_cli.jobs.node_script import node_script
from trainium_cli.plan.plan_choices import suppress_option
from trainium_cli.plan_options import IRRELEVANT_LATER, refuse
from trainium_cli.terminal import print_json, say
from trainium_core.engines.sagemaker.job_checks.preflight import JOB_CHECKS
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import SAGEMAKER, TARGETS, JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_runtime.errors import UnavailableError
from trainium_wire.job import Job


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--on", type=click.Choice(TARGETS), help="Where it runs. Default: cluster.")
@work_options
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
@click.option(
    "--precompile", is_flag=True, help="Compile on a host without devices first, unless an earlier job did the same."
)
@click.option("--wake", is_flag=True, help="Wake the cluster before, and put it to sleep when the job is over.")
@click.option("--dry-run", is_flag=True, help="Show what each node would execute, and start nothing.")
@click.option("--detach", is_flag=True, help="Do not follow the job.")
@click.option("--yes", is_flag=True, help="Wake the cluster, launch hosts or SageMaker's instances without asking.")
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
    precompile: bool,
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

    Exit code 0: the job succeeded. 1: it did not, or was not started. 3: could not tell. 130: left running, by
    Ctrl-C.
    """
    if wake and detach:
        raise click.UsageError("--wake puts the cluster to sleep when the job is over: leave --detach out")
    try:
        request, given, shown = read_request(script, arguments, options)
    except JobError as error:
        refuse(error, as_json=as_json)
    outputs = outputs or (Path(request.outputs) if request.outputs else None)
    if request.on == SAGEMAKER:
        if wake or outputs or precompile:
            of_cluster = "--wake, --outputs and --precompile"
            raise click.UsageError(f"{of_cluster} are of the cluster: leave them out with --on sagemaker")
        # Imported here: who runs on the cluster needs none of it.
        from trainium_cli.jobs.run_on_sagemaker import run_on_sagemaker

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
        refuse(as_given(error, shown), as_json=as_json)
    if package.left_out:
        click.echo(f"Left out of the source: {', '.join(package.left_out)}", err=True)
    if dry_run:
        print_json(asdict(job)) if as_json else click.echo(node_script(job))
        return
    stack = stack_of_cluster(plan, stack)
    if precompile:
        # Imported here: few need it.
        from trainium_cli.jobs.precompiling import precompile_first

        precompile_first(plan, stack, request, job, package, yes=yes, as_json=as_json)
    if wake:
        begun = time.monotonic()
        _switch(overrides, cdk_json, stack, asleep=False, yes=yes)
        job = replace(job, waking_seconds=round(time.monotonic() - begun, 1))
    awake = f"Interrupted: {plan.cluster_name} is awake, and billed. `trn sleep` puts it to sleep."
    try:
        with going_on(awake) if wake else nullcontext():
            state = submit_and_follow(
                plan, stack, job, package, uploads=request.uploads, detach=detach, as_json=as_json
            )
            if outputs is not None and state is not None:
                fetch_outputs(plan, stack, job.id, outputs)
    finally:
        # Also when it was not started. A job that goes on has to keep its nodes.
        if wake:
            _sleep_unless_running(plan, overrides, cdk_json, stack)
    raise click.exceptions.Exit(ExitCode.OK if detach else job_exit_code(state))


def _new_job(plan: Plan, request: JobRequest) -> tuple[Job, SourcePackage]:
    """The job for the cluster, and its source. Raises JobError."""
    package = packed_source(request)
    script_there = package.script or None
    job = new_job(plan, request, script=script_there, now=datetime.now(UTC), source_sha256=package.digest)
    return job, package


def _switch(overrides: tuple[str, ...], cdk_json: Path | None, stack: str, *, asleep: bool, yes: bool) -> None:
    """Wake the cluster, or put it to sleep. Raises CliError when that fails."""
    invocation = Invocation(overrides=overrides, cdk_json=cdk_json)
    say(switch(invocation, stack, "asleep" if asleep else "awake", yes=yes))


def _sleep_unless_running(plan: Plan, overrides: tuple[str, ...], cdk_json: Path | None, stack: str) -> None:
    try:
        jobs = cluster_jobs(plan, stack)
        current = jobs.current() if jobs else None
        state = jobs.state(current.job.id) if jobs and current else None
    except UnavailableError as error:
        click.echo(f"{plan.cluster_name} stays awake and is billed: could not tell if a job runs: {error}", err=True)
        return
    if state is not None and not state.is_over:
        message = (
            f"{plan.cluster_name} stays awake and is billed: {state.job.id} goes on. Put it to sleep with `trn sleep`."
        )
        click.echo(message, err=True)
        return
    _switch(overrides, cdk_json, stack, asleep=True, yes=True)
