"""`trn sagemaker`: training jobs from the same plan, without machines to keep."""

import click

from trainium_cli.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "run": LazyCommand(
        module="trainium_cli.jobs.sagemaker_run_command", attribute="run", summary="Run a training script as a job."
    ),
    "preflight": LazyCommand(
        module="trainium_cli.jobs.sagemaker_preflight_command",
        attribute="preflight",
        summary="Ask the AWS account whether a job can be started.",
    ),
    "list": LazyCommand(
        module="trainium_cli.jobs.sagemaker_list_command", attribute="list_jobs", summary="List the jobs of the plan."
    ),
    "describe": LazyCommand(
        module="trainium_cli.jobs.sagemaker_describe_command", attribute="describe", summary="Show where a job stands."
    ),
    "logs": LazyCommand(
        module="trainium_cli.jobs.sagemaker_logs_command", attribute="logs", summary="Show what a job wrote."
    ),
    "stop": LazyCommand(module="trainium_cli.jobs.sagemaker_stop_command", attribute="stop", summary="Stop a job."),
}


@click.group("sagemaker", cls=LazyGroup, lazy_commands=COMMANDS)
def sagemaker() -> None:
    """Run the plan's training as SageMaker jobs.

    Type, number of instances, region and tags are the plan's; role, buckets and network those of SageMakerTrainingStack
    unless options name others.
    """
