"""`trn jobs`: the jobs of the cluster, or where one of them stands and where its time went."""

import json
from pathlib import Path

import click

from trainium_cli.cluster_selection import command_clients, stack_of_cluster
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end, job_cluster_options, known_job, newest_states, read_cluster
from trainium_cli.jobs.job_report import job_record, jobs_table, show_state, state_as_json
from trainium_cli.jobs.job_submission import fetch_outputs
from trainium_cli.terminal import console, print_json, say
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import estimate, precompile_host_hour
from trainium_core.jobs.precompile import is_precompilation
from trainium_core.jobs.progress import JobState
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.errors import UnavailableError


@click.command()
@click.argument("job", required=False)
@click.option("--outputs", type=click.Path(path_type=Path), help="Folder to fetch the outputs of JOB into.")
@click.option(
    "--most", type=click.IntRange(min=1), default=20, show_default=True, help="How many to list, the newest first."
)
@click.option("--record", is_flag=True, help="Print the record of JOB: one line of JSON for each phase and event.")
@job_cluster_options
def jobs(
    job: str | None,
    outputs: Path | None,
    most: int,
    record: bool,
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    stack: str | None,
) -> None:
    """List the jobs of the cluster, or show where the time of one went.

    Training jobs of SageMaker, also those of `trn run --on sagemaker`, are listed by `trn sagemaker list`.

    Exit code 0: shown. 1: there is no such job, or no cluster. 3: could not tell.
    """
    if outputs and job is None:
        raise click.UsageError("--outputs fetches those of one job: name it")
    if record and job is None:
        raise click.UsageError("--record is that of one job: name it")
    plan, known = read_cluster(cdk_json, overrides, stack, as_json=as_json)
    if job is None:
        try:
            with waiting("Asking S3 ..."):
                states = newest_states(known, most)
        except UnavailableError as error:
            end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
        _show_all(states, as_json=as_json)
        return
    state = known_job(known, job, as_json=as_json, every_node=True)
    with waiting("Asking AWS for prices ..."):
        estimated = estimate(plan, aws=AwsPrices(plan.region, clients=command_clients()))
    of_host = is_precompilation(state.job)
    hourly = precompile_host_hour(plan, estimated) if of_host else estimated.running_hour
    if record:
        for line in job_record(state, hourly):
            click.echo(json.dumps(line))
    elif as_json:
        print_json(state_as_json(state, job_record(state, hourly)))
    else:
        show_state(state, hourly)
    if outputs is not None:
        fetch_outputs(plan, stack_of_cluster(plan, stack), job, outputs)


def _show_all(states: list[JobState], *, as_json: bool) -> None:
    if as_json:
        print_json([state_as_json(state) for state in states])
    elif states:
        console().print(jobs_table(states))
    else:
        say("No job has been started on this cluster: `trn run` starts one.")
