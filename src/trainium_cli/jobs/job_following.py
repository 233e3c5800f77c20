"""Follows a job on the terminal."""

from collections.abc import Callable
from contextlib import suppress

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import report_interruption
from trainium_cli.jobs.job_report import lasted_seconds, state_line
from trainium_cli.terminal import echo, echo_verbatim
from trainium_core.jobs.engine import JobEngine
from trainium_core.jobs.explaining import job_explanation
from trainium_core.jobs.follow import JobFollower, LogLine
from trainium_core.jobs.progress import JobState
from trainium_runtime.errors import UnavailableError
from trainium_wire.job import RESULTS_LOST


def follow_job(
    follower: JobFollower,
    *,
    quiet: bool,
    to_the_end: bool = True,
    when_interrupted: str = "",
    after_line: Callable[[LogLine], None] = lambda _line: None,
) -> JobState | None:
    """Show lines and states until the job ends; None if AWS stops answering. Ctrl-C ends the command.

    Args:
        follower: Reads the job.
        quiet: Print log lines to standard error instead of standard output.
        to_the_end: Wait until the job ends; otherwise, show the lines so far.
        when_interrupted: Message for Ctrl-C. Default: that the job keeps running.
        after_line: Called with each line.

    Raises:
        click.exceptions.Exit: Ctrl-C was pressed.
    """
    last, seconds = None, 0.0
    try:
        for event in follower.events(to_the_end=to_the_end):
            if isinstance(event, LogLine):
                echo_verbatim(log_text(event), err=quiet)
                after_line(event)
            else:
                last = event
                # A node's clock determines the end, this machine's clock the time before: durations never decrease.
                seconds = max(seconds, lasted_seconds(event))
                echo(state_line(event, seconds), err=True, dim=not event.is_over)
    except KeyboardInterrupt as interrupt:
        report_interruption(when_interrupted or f"Interrupted: {_still_running(follower.job_id)}")
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from interrupt
    except UnavailableError as error:
        echo(f"The state of the job is unknown: {error}\n{_still_running(follower.job_id)}", err=True)
        return None
    return last


def final_state(engine: JobEngine, state: JobState) -> JobState:
    """The state of a job that has ended, with the reports of every node; the given state if it cannot be read."""
    if state.is_over:
        with suppress(UnavailableError):
            return engine.state(state.job.id, every_node=True) or state
    return state


def show_reason(engine: JobEngine, state: JobState, *, err: bool = True) -> None:
    """Print why a job did not succeed, and its explanation by `trn explain`, on standard error by default.

    For a job that succeeded, print what is to be known of its results, if anything.
    """
    outcome = state.outcome
    if outcome is None:
        return
    if outcome.is_success:
        if outcome.reason:
            echo(f"\nNote: {outcome.reason}", err=err)
        return
    if outcome.reason:
        echo(f"\nReason: {outcome.reason}", err=err)
    found = job_explanation(engine, state)
    if found is not None:
        echo(f"Cause:  {found.cause}.\nFix:    {found.error.fix}.", err=err)


def log_text(line: LogLine) -> str:
    """A line, after the name of its node or its rank. Lines of rank 0 have no prefix."""
    if line.node is not None:
        return f"{line.node} | {line.text}"
    return f"[rank {line.rank}] {line.text}" if line.rank else line.text


def job_exit_code(state: JobState | None) -> ExitCode:
    """0 for success, 3 while the job is running or its state is unknown, 5 for lost results, else 1."""
    if state is None or state.outcome is None:
        return ExitCode.UNKNOWN
    if state.outcome.result == RESULTS_LOST:
        return ExitCode.RESULTS_LOST
    return ExitCode.OK if state.outcome.is_success else ExitCode.NOT_READY


def _still_running(job_id: str) -> str:
    commands = f"To follow it: trn logs {job_id} --follow. To end it: trn stop {job_id}."
    return f"{job_id} keeps running, and is billed. {commands}"
