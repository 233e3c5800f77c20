"""Starts a prepared job, and follows it."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import interrupt_message
from trainium_cli.invocation import Invocation
from trainium_cli.jobs.job_engines import asking
from trainium_cli.jobs.job_following import final_state, follow_job, show_reason
from trainium_cli.jobs.job_report import job_record, show_state, source_row, state_as_json
from trainium_cli.terminal import console, echo, echo_verbatim, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.jobs.engine import JobEngine, PreparedJob, StartUnknownError
from trainium_core.jobs.follow import JobFollower
from trainium_core.jobs.progress import JobState
from trainium_core.plan import Plan
from trainium_runtime.errors import RequestRefusedError, UnavailableError


def submit(invocation: Invocation, plan: Plan, engine: JobEngine, job: PreparedJob, *, yes: bool, show: bool) -> None:
    """Start a job, after confirmation if the engine bills jobs.

    Args:
        invocation: The options that select the cluster.
        plan: The plan of the cluster.
        engine: The engine of the job.
        job: The job.
        yes: Do not prompt.
        show: Print a summary first.

    Raises:
        Abort: The job was not confirmed.
        CliError: The job was not started, or it is unknown whether it was started.
        JobError: The job is invalid.
    """
    with nothing_started():
        with asking(invocation, plan, "Checking with AWS whether it can start ..."):
            notes = job.check()
        if show:
            rows = [("job", job.job_id), source_row(job.package), *job.rows()]
            console().print(pairs(rows, label_width=11))
        for text in notes:
            echo(text, err=True)
        if engine.bills_jobs and not yes:
            click.confirm("\nStart it?", abort=True)
        with (
            waiting("Uploading ..."),
            interrupt_message(f"Interrupted: `trn jobs {job.job_id}` shows whether it was started."),
        ):
            notes = job.submit()
        for text in notes:
            echo(text, err=True)


@contextmanager
def nothing_started() -> Generator[None]:
    """Errors in this block say that nothing was started, or that it is unknown whether the job was started."""
    try:
        yield
    except UnavailableError as error:
        raise CliError(f"Nothing was started: {error}", ExitCode.UNKNOWN) from error
    except RequestRefusedError as error:
        raise CliError(f"Nothing was started: {error}", ExitCode.NOT_READY) from error
    except StartUnknownError as error:
        message = f"Unknown whether the job was started: {error}. If it was, `trn jobs` shows it."
        raise CliError(message, ExitCode.UNKNOWN) from error


def submit_and_follow(
    invocation: Invocation, plan: Plan, engine: JobEngine, job: PreparedJob, *, detach: bool, yes: bool
) -> JobState | None:
    """Start a job and follow it until it ends; None with `detach`, or if its state is unknown. Raises as `submit`."""
    as_json = invocation.as_json
    submit(invocation, plan, engine, job, yes=yes, show=not as_json)
    echo(f"Submitted {job.job_id}.", err=True)
    if detach:
        if as_json:
            print_json({"submitted": True, "job": job.as_json})
        echo(f"`trn logs {job.job_id} --follow` follows it.", err=True)
        return None
    state = follow_job(JobFollower(job.job_id, engine), quiet=as_json)
    if state is not None:
        _show_end(engine, state, as_json=as_json, is_aws=invocation.reaches_aws(plan.region))
    return state


def _show_end(engine: JobEngine, state: JobState, *, as_json: bool, is_aws: bool) -> None:
    state = final_state(engine, state)
    hourly = engine.hourly(state)
    if as_json:
        print_json(state_as_json(state, job_record(state, hourly)))
        show_reason(engine, state)
        return
    if state.outcome and state.outcome.traceback and state.outcome.node != 0:
        # Those of node 0 are in the output that was followed.
        echo_verbatim(f"\n{state.outcome.traceback}")
    console().print()
    show_state(state, hourly, is_aws=is_aws)
    show_reason(engine, state, err=False)
