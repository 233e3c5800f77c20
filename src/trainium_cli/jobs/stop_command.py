"""`trn stop`: ends a job, and waits until it has ended."""

import sys

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.jobs.job_engines import engine_options, read_engines
from trainium_cli.jobs.job_following import follow_job
from trainium_cli.terminal import echo, print_json, say
from trainium_core.engines.registry import ENGINES
from trainium_core.jobs.follow import JobFollower
from trainium_runtime.errors import RequestRefusedError

_STILL_ENDING = "Interrupted: {0} is ending, and billed until it has ended. `trn jobs {0}` shows when it has."


@click.command()
@click.argument("job", required=False)
@click.option("--detach", is_flag=True, help="Do not wait for the end.")
@engine_options
@plan_options
@pass_invocation
def stop(invocation: Invocation, job: str | None, on: str | None, stack: str | None, detach: bool) -> ExitCode:
    """End a job on all its nodes.

    JOB is a job ID. Default: the last job; on Slurm and SageMaker, where it may be another person's, after
    confirmation. Its processes get SIGTERM, and are killed after 10 seconds (on SageMaker and Slurm after two minutes
    at most). Complete checkpoints and outputs are kept: `trn run --resume JOB SCRIPT` continues from the last
    checkpoint. A job that has already ended does not change; on EKS, its JobSet is deleted if it waits to start again.

    Exit code 0: the job has ended, or, with --detach, is ending. 1: no job has this ID, no cluster is deployed, or
    the job was not stopped. 3: unknown. 130: Ctrl-C ended the wait.
    """
    engine, state = read_engines(invocation, on, stack).known(job)
    job_id = state.job.id
    if not state.is_over and job is None and ENGINES[engine.key].has_parallel_jobs:
        _confirm(job_id, engine.stack)
    try:
        if state.is_over:
            engine.stop_restarts(job_id)
        else:
            engine.stop(job_id)
    except RequestRefusedError as error:
        raise CliError(f"{job_id} was not stopped: {error}", ExitCode.NOT_READY) from error
    if not state.is_over:
        if detach:
            echo(f"Requested the end of {job_id}; `trn jobs {job_id}` shows when it has ended.", err=True)
            return ExitCode.OK
        last = follow_job(JobFollower(job_id, engine), quiet=True, when_interrupted=_STILL_ENDING.format(job_id))
        if last is None:
            return ExitCode.UNKNOWN
        state = last
    if invocation.as_json:
        print_json({"job": job_id, "status": state.status})
    else:
        say(f"{job_id} has ended: {state.status}.")
    return ExitCode.OK


def _confirm(job_id: str, stack: str) -> None:
    """Ask before ending a job that was not named: several people may have jobs at the same time."""
    if not _is_interactive():
        raise click.UsageError(f"not a terminal: name the job, for example {job_id}, the last one of {stack}")
    click.confirm(f"End {job_id}, the last job of {stack}? Another user may have submitted it.", abort=True, err=True)


def _is_interactive() -> bool:
    return sys.stdin.isatty()
