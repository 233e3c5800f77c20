"""Following a job on the terminal, and what Ctrl-C means meanwhile."""

import sys
from typing import Literal

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import go_on
from trainium_cli.jobs.sagemaker_report import log_text, state_line
from trainium_core.engines.sagemaker.jobs.follow import JobFollower
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, LogLine, TrainingJobControl
from trainium_runtime.errors import RequestRefusedError, UnavailableError

Choice = Literal["stop", "leave", "follow"]


def follow_to_the_end(follower: JobFollower, control: TrainingJobControl, *, quiet: bool) -> JobState | None:
    """Show lines and states until the job is over; None when AWS answers no more.

    quiet: lines and states go to standard error, which leaves standard output to JSON.
    """
    while True:
        try:
            return _show_events(follower, quiet=quiet)
        except KeyboardInterrupt:
            go_on()
            choice = _prompt(follower.name)
            if choice == "leave":
                _say_that_it_runs(follower.name)
                raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
            if choice == "stop":
                _stop(follower.name, control)
        except UnavailableError as error:
            click.echo(f"Could not tell how the job goes on: {error}", err=True)
            _say_that_it_runs(follower.name)
            return None


def exit_code(state: JobState | None) -> ExitCode:
    """0 for a job that completed, 1 for one that failed or was stopped, 3 when nobody knows."""
    if state is None:
        return ExitCode.UNKNOWN
    return ExitCode.OK if state.is_completed else ExitCode.NOT_READY


def _show_events(follower: JobFollower, *, quiet: bool) -> JobState:
    nodes, last = 1, None
    for event in follower.events():
        if isinstance(event, LogLine):
            click.echo(log_text(event, nodes=nodes), err=quiet)
        else:
            nodes, last = event.instances, event
            click.secho(state_line(event), err=True, dim=True)
    assert last is not None, "following ends with the state of a job that is over"
    return last


def _prompt(name: str) -> Choice:
    if not _is_interactive():
        return "leave"
    try:
        answer = click.prompt(
            f"\n{name} goes on. Stop it (s), leave it running (l), or keep following it (f)?",
            type=click.Choice(["s", "l", "f"]),
            default="f",
            err=True,
        )
    except click.Abort:  # Ctrl-C once more
        return "leave"
    choices: dict[str, Choice] = {"s": "stop", "l": "leave", "f": "follow"}
    return choices[answer]


def _is_interactive() -> bool:
    return sys.stdin.isatty()


def _stop(name: str, control: TrainingJobControl) -> None:
    try:
        control.stop(name)
        click.echo(f"Asked SageMaker to stop {name}; it saves what it has.", err=True)
    except RequestRefusedError as error:
        click.echo(f"It was not stopped: {error}", err=True)


def _say_that_it_runs(name: str) -> None:
    click.echo(
        f"{name} runs on and is billed. `trn sagemaker logs {name} --follow`, `trn sagemaker stop {name}`", err=True
    )
