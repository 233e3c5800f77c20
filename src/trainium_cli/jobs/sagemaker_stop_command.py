"""`trn sagemaker stop`: stops one training job."""

from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.sagemaker_describe_command import known_job
from trainium_cli.jobs.sagemaker_job_options import read_job_plan
from trainium_cli.jobs.sagemaker_report import state_rows
from trainium_cli.plan_options import context_options
from trainium_cli.terminal import console, pairs, say
from trainium_core.engines.sagemaker.jobs.aws_training_job_control import AwsTrainingJobControl
from trainium_runtime.errors import RequestRefusedError


@click.command()
@click.argument("name")
@context_options
@click.option("--yes", is_flag=True, help="Stop it without asking you first, for scripts.")
def stop(name: str, overrides: tuple[str, ...], cdk_json: Path | None, yes: bool) -> None:
    """Stop a job.

    SageMaker signals the script, waits two minutes, and saves what the job has made so far. A job that is over is left
    as it is.

    Exit code 0: asked to stop, or over already. 1: not stopped. 3: could not tell.
    """
    plan = read_job_plan(cdk_json, overrides, as_json=False)
    control = AwsTrainingJobControl(plan.region)
    state = known_job(name, control, plan.region, as_json=False)
    if state.is_over:
        say(f"{name} is over: {state.status}.")
        return
    console().print(pairs(state_rows(state), label_width=11))
    if not yes and not click.confirm("Stop it?"):
        say("It was not stopped.")
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    try:
        control.stop(name)
    except RequestRefusedError as error:
        click.echo(f"It was not stopped: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.NOT_READY) from error
    say(f"Asked SageMaker to stop {name}. `trn sagemaker describe {name}` shows when it has.")
