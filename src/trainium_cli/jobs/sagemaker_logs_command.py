"""`trn sagemaker logs`: what one training job wrote."""

from dataclasses import asdict
from pathlib import Path

import click

from trainium_cli.jobs.sagemaker_describe_command import known_job
from trainium_cli.jobs.sagemaker_following import exit_code, follow_to_the_end
from trainium_cli.jobs.sagemaker_job_options import could_not_tell, read_job_plan
from trainium_cli.jobs.sagemaker_report import log_text
from trainium_cli.plan_options import plan_options
from trainium_cli.terminal import print_json
from trainium_core.engines.sagemaker.jobs.aws_training_job_control import AwsTrainingJobControl
from trainium_core.engines.sagemaker.jobs.follow import JobFollower, log_pages
from trainium_core.engines.sagemaker.jobs.training_jobs import LogLine
from trainium_runtime.errors import UnavailableError


@click.command()
@click.argument("name")
@plan_options
@click.option("--follow", is_flag=True, help="Go on until the job is over; the exit code is then the job's result.")
def logs(name: str, overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, follow: bool) -> None:
    """Show what a job wrote.

    Exit code with --follow as with `trn sagemaker run`; else 0: shown. 1: there is no such job. 3: could not tell.
    """
    if as_json and follow:
        raise click.UsageError("--json shows what there is: leave --follow out")
    plan = read_job_plan(cdk_json, overrides, as_json=as_json)
    control = AwsTrainingJobControl(plan.region)
    state = known_job(name, control, plan.region, as_json=as_json)
    if follow:
        raise click.exceptions.Exit(exit_code(follow_to_the_end(JobFollower(name, control), control, quiet=False)))
    lines: list[LogLine] = []
    try:
        for page in log_pages(name, control):
            lines += page.lines
            for line in page.lines if not as_json else ():
                click.echo(log_text(line, nodes=state.instances))
    except UnavailableError as error:
        could_not_tell(error, "Could not tell the rest" if lines else "Could not tell", as_json=as_json)
    if as_json:
        print_json([asdict(line) for line in lines])
    if not lines:
        click.echo(f"{name} has written nothing yet: {state.status}, {state.stage}.", err=True)
