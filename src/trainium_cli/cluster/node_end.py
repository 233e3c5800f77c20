"""The option --grace, and the sentence about the running job, for commands that terminate nodes."""

from datetime import timedelta

import click

from trainium_cli.invocation import Command, Invocation
from trainium_cli.mistakes import mistake
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.nodes.aws_nodes import AwsUsage
from trainium_core.nodes.report import NoFleetError
from trainium_core.plan import Plan
from trainium_core.setting_schema.forms import read_duration
from trainium_core.teardown.notice import DEFAULT_GRACE
from trainium_runtime.errors import UnavailableError
from trainium_runtime.usage import LastJob

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
        "save their state in this time, which ends when their job has ended. 0: no notice.",
    )(command)


def running_job_sentence(invocation: Invocation, plan: Plan, stack: str) -> str | None:
    """A sentence about the job on the stack's nodes, or why it is unknown; None if no job is running, or with Slurm."""
    try:
        bucket, last = _last_job(invocation, plan, stack)
        if bucket is None or last is None or last.ended:
            return None
        state = JobStore(plan.region, bucket, clients=invocation.clients).state(last.job_id)
    except UnavailableError as error:
        return f"unknown whether a job is running: {error}"
    status = f" ({state.status})" if state else ""
    return f"{last.job_id} has not ended{status}: unsaved state will be lost"


def has_job(invocation: Invocation, plan: Plan, stack: str) -> bool | None:
    """Whether a job is running on the stack's nodes, or they are storing its results; None if unknown."""
    try:
        bucket, last = _last_job(invocation, plan, stack)
        if bucket is None or last is None or not last.ended:
            return last is not None
        state = JobStore(plan.region, bucket, clients=invocation.clients).state(last.job_id, every_node=True)
    except UnavailableError:
        return None
    attempts = state.attempts if state else ()
    return any(not node.has_ended for attempt in attempts[-1:] for node in attempt.nodes)


def _last_job(invocation: Invocation, plan: Plan, stack: str) -> tuple[str | None, LastJob | None]:
    """The bucket of a stack's nodes, and their last job; None without one. Raises UnavailableError."""
    try:
        fleet = AwsFleets(plan.region, clients=invocation.clients).fleet_record(stack)
    except NoFleetError:
        return None, None
    if fleet is None:
        return None, None
    return fleet.bucket, AwsUsage(plan.region, clients=invocation.clients).last_job(fleet.bucket)
