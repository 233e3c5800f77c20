"""`trn sagemaker describe`: where one training job stands."""

import json
from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.sagemaker_job_options import could_not_tell, read_job_plan
from trainium_cli.jobs.sagemaker_report import state_as_json, state_rows
from trainium_cli.plan_options import plan_options
from trainium_cli.terminal import console, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.engines.sagemaker.jobs.aws_training_jobs import AwsTrainingJobs
from trainium_core.engines.sagemaker.jobs.cost import usd_per_hour
from trainium_core.engines.sagemaker.jobs.record import record_of
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, TrainingJobs
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.errors import UnavailableError


@click.command()
@click.argument("name")
@click.option("--record", is_flag=True, help="Print the job's record: one line of JSON for each phase and event.")
@plan_options
def describe(name: str, record: bool, overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool) -> None:
    """Show where a job stands.

    Exit code 0: the job is shown. 1: there is no such job. 3: could not tell.
    """
    plan = read_job_plan(cdk_json, overrides, as_json=as_json)
    state = known_job(name, AwsTrainingJobs(plan.region), plan.region, as_json=as_json)
    if record:
        with waiting("Asking AWS for prices ..."):
            hourly = usd_per_hour(plan, state, aws=AwsPrices(plan.region))
        for line in record_of(state, hourly):
            click.echo(json.dumps(line))
    elif as_json:
        print_json(state_as_json(state))
    else:
        console().print(pairs(state_rows(state), label_width=11))


def known_job(name: str, jobs: TrainingJobs, region: str, *, as_json: bool) -> JobState:
    """The job of that name; ends the command when there is none, or no answer."""
    try:
        state = jobs.training_job(name)
    except UnavailableError as error:
        could_not_tell(error, "Could not tell", as_json=as_json)
    if state is None:
        why = f"There is no training job {name} in {region}."
        if as_json:
            print_json({"error": why})
        click.echo(f"{why} `trn sagemaker list` shows those there are.", err=True)
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    return state
