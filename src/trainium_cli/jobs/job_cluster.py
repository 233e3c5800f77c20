"""The cluster that jobs run on: its stack, its nodes, and the bucket that commands and nodes share."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from trainium_cli.cluster_selection import (
    command_clients,
    others_sentence,
    read_cluster_plan,
    stack_of_cluster,
    stack_option,
)
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import IRRELEVANT_LATER, plan_options
from trainium_cli.terminal import print_json
from trainium_cli.waiting import waiting
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.jobs.progress import JobState
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.plan import Plan
from trainium_core.problems import nearest
from trainium_runtime.errors import UnavailableError

Command = TypeVar("Command", bound=Callable[..., Any])


def job_cluster_options(command: Command) -> Command:
    """The options of a plan, and --stack."""
    return plan_options(stack_option(command))


def read_cluster(
    cdk_json: Path | None, overrides: tuple[str, ...], given_stack: str | None, *, as_json: bool
) -> tuple[Plan, AwsJobs]:
    """The plan, and the jobs of its deployed cluster; ends the command where there is none."""
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
    stack = stack_of_cluster(plan, given_stack)
    try:
        with waiting(f"Asking AWS for {stack} in {plan.region} ..."):
            jobs = cluster_jobs(plan, stack)
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    if jobs is None:
        end(ExitCode.NOT_READY, no_stack(plan, stack), as_json=as_json)
    return plan, jobs


def cluster_jobs(plan: Plan, stack: str, *, account: AwsFleets | None = None) -> AwsJobs | None:
    """The jobs of a stack; None when there is no such stack. account: one that is asked for more of it.

    Raises UnavailableError.
    """
    clients = command_clients()
    account = account or AwsFleets(plan.region, clients=clients)
    deployed = account.deployed_stack(stack)
    if deployed is None:
        return None
    bucket = account.fleet_resources(stack, deployed).records_bucket
    if bucket is None:
        raise UnavailableError(f"the stack {stack} is in {deployed.status}: the bucket of its records is not there")
    return AwsJobs(plan.region, bucket, clients=clients)


def no_stack(plan: Plan, stack: str) -> str:
    return f"There is no stack {stack} in {plan.region}: `trn deploy` makes it.{others_sentence(plan)}"


def known_job(jobs: AwsJobs, job_id: str | None, *, as_json: bool, every_node: bool = False) -> JobState:
    """The job of that id, default the last one that was started; ends the command when there is none, or no answer."""
    try:
        with waiting("Asking S3 ..."):
            if job_id is None:
                current = jobs.current()
                job_id = current.job.id if current else None
            state = None if job_id is None else jobs.state(job_id, every_node=every_node)
            known = () if state else jobs.job_ids()
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    if state is None:
        end(ExitCode.NOT_READY, _no_job(job_id, known), as_json=as_json)
    return state


def newest_states(jobs: AwsJobs, most: int) -> list[JobState]:
    """Of the last jobs, the newest first. Raises UnavailableError."""
    newest = newest_first(jobs.job_ids())[:most]
    return [state for one in newest if (state := jobs.state(one)) is not None]


def newest_first(job_ids: Iterable[str]) -> list[str]:
    """Ids of jobs by when they were submitted."""
    return sorted(job_ids, key=_submitted, reverse=True)


def _submitted(job_id: str) -> str:
    """The time that a job's id ends with."""
    return job_id[-len("20261122-120000") :]


def _no_job(job_id: str | None, known: Sequence[str]) -> str:
    if job_id is None:
        return "No job has been started on this cluster: `trn run` starts one."
    close = nearest(job_id, known)
    return f"There is no job {job_id}{f'; nearest: {close}' if close else ''}. `trn jobs` lists them."


def end(code: ExitCode, message: str, *, as_json: bool) -> NoReturn:
    """End the command with a sentence on standard error, and as JSON where that is wanted."""
    if as_json:
        print_json({"error": message})
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)
