"""The option --grace, and the sentence about the running job, for commands that terminate nodes."""

from datetime import timedelta

import click

from trainium_cli.invocation import Command, Invocation
from trainium_cli.mistakes import mistake
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.progress import JobState
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.nodes.report import NoFleetError
from trainium_core.plan import Plan
from trainium_core.setting_schema.forms import read_duration
from trainium_core.teardown.notice import DEFAULT_GRACE
from trainium_runtime.errors import UnavailableError

_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1)}
_LONGEST = timedelta(hours=1)


def in_words(grace: timedelta) -> str:
    """A duration in the form of the option, such as 90s or 2m."""
    seconds = round(grace.total_seconds())
    return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"


def _duration(_ctx: click.Context, _param: click.Parameter, value: str) -> timedelta:
    text = value.strip()
    grace = timedelta() if text == "0" else read_duration(text, _UNITS)
    if grace is None or grace > _LONGEST:
        allowed = f"0 for no notice, or seconds or minutes such as 90s or 5m, at most {in_words(_LONGEST)}"
        raise mistake("--grace", value, allowed=allowed, fix=f"write --grace {in_words(DEFAULT_GRACE)}")
    return grace


def grace_option(command: Command) -> Command:
    return click.option(
        "--grace",
        metavar="TIME",
        default=in_words(DEFAULT_GRACE),
        show_default=True,
        callback=_duration,
        help="Time between the notice to running nodes and their termination, such as 90s or 5m, at most 60m. Jobs can "
        "save their state in this time. 0: no notice.",
    )(command)


def running_job_sentence(invocation: Invocation, plan: Plan, stack: str) -> str | None:
    """A sentence about the job on the stack's nodes, or why it is unknown; None if no job is running, or with Slurm."""
    try:
        state = _last_job(invocation, plan, stack)
    except UnavailableError as error:
        return f"unknown whether a job is running: {error}"
    if state is None or state.is_over:
        return None
    return f"{state.job.id} has not ended ({state.status}): unsaved state will be lost"


def has_job(invocation: Invocation, plan: Plan, stack: str) -> bool | None:
    """Whether a job is running on the stack's nodes, or they are storing its results; None if unknown."""
    try:
        state = _last_job(invocation, plan, stack)
    except UnavailableError:
        return None
    if state is None or not state.is_over:
        return state is not None
    return any(not node.has_ended for attempt in state.attempts[-1:] for node in attempt.nodes)


def _last_job(invocation: Invocation, plan: Plan, stack: str) -> JobState | None:
    """The current or last job on the stack's nodes; None without one, or with Slurm. Raises UnavailableError."""
    clients = invocation.clients
    try:
        fleet = AwsFleets(plan.region, clients=clients).fleet_record(stack)
    except NoFleetError:
        return None
    return JobStore(plan.region, fleet.bucket, clients=clients).last(every_node=True) if fleet else None
