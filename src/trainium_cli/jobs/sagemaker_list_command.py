"""`trn sagemaker list`: the training jobs of the plan's cluster."""

from dataclasses import asdict
from pathlib import Path

import click

from trainium_cli.jobs.sagemaker_job_options import could_not_tell, read_job_plan
from trainium_cli.jobs.sagemaker_report import lasted
from trainium_cli.plan_options import plan_options
from trainium_cli.terminal import console, print_json, say, table
from trainium_cli.waiting import waiting
from trainium_core.engines.sagemaker.jobs.aws_training_jobs import AwsTrainingJobs
from trainium_core.naming import training_job_prefix
from trainium_runtime.errors import UnavailableError

_STATUSES = ("InProgress", "Completed", "Failed", "Stopping", "Stopped")


@click.command("list")
@plan_options
@click.option("--status", type=click.Choice(_STATUSES, case_sensitive=False), help="Only jobs of this status.")
@click.option("--all", "every", is_flag=True, help="Jobs of other clusters and people, too.")
@click.option(
    "--most", type=click.IntRange(min=1), default=20, show_default=True, help="How many to show, the newest first."
)
def list_jobs(
    overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, status: str | None, every: bool, most: int
) -> None:
    """List the jobs of the plan."""
    plan = read_job_plan(cdk_json, overrides, as_json=as_json)
    prefix = "" if every else training_job_prefix(plan.cluster_name)
    try:
        with waiting(f"Asking AWS in {plan.region} ..."):
            jobs = AwsTrainingJobs(plan.region).training_jobs(prefix=prefix, status=status or "", most=most)
    except UnavailableError as error:
        could_not_tell(error, "Could not tell", as_json=as_json)
    if as_json:
        print_json([asdict(job) for job in jobs])
        return
    if not jobs:
        say(f"No such job in {plan.region}.")
        return
    rows = [(job.name, job.status, f"{job.created:%Y-%m-%d %H:%MZ}", lasted(job.created, job.ended)) for job in jobs]
    console().print(table(["Job", "Status", "Created", "Lasted"], rows, right=["Lasted"]))
