"""`trn sagemaker preflight`: whether a training job can be started in the account whose credentials are found."""

from pathlib import Path

import click

from trainium_cli.jobs.sagemaker_job_options import JobOptions, could_not_tell, job_of, job_options, read_job_plan
from trainium_cli.plan.plan_choices import suppress_option
from trainium_cli.plan.preflight_command import EXIT_CODES
from trainium_cli.plan.preflight_report import findings_as_json, show_findings
from trainium_cli.plan_options import plan_options, refuse
from trainium_cli.terminal import print_json
from trainium_cli.waiting import waiting
from trainium_core.engines.sagemaker.job_checks.aws_account import AwsSageMakerAccount
from trainium_core.engines.sagemaker.job_checks.preflight import JOB_CHECKS, job_preflight
from trainium_core.engines.sagemaker.jobs.run import checked_request
from trainium_core.jobs.problems import JobError
from trainium_core.preflight.finding import verdict
from trainium_runtime.errors import UnavailableError


@click.command()
@job_options
@plan_options
@suppress_option(JOB_CHECKS)
def preflight(
    options: JobOptions,
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    suppressed: frozenset[str],
) -> None:
    """Ask the AWS account whether a job can be started.

    Only reads: quotas, the container image, the role and what it may reach, the buckets, and the cost.
    """
    plan = read_job_plan(cdk_json, overrides, as_json=as_json)
    account = AwsSageMakerAccount(plan.region)
    try:
        job = job_of(plan, options, "train.py", (), account)
        checked_request(plan, job)
    except JobError as error:
        refuse(error, as_json=as_json)
    except UnavailableError as error:
        could_not_tell(error, "Could not tell", as_json=as_json)
    with waiting(f"Asking AWS in {plan.region} ..."):
        findings = job_preflight(plan, job, account, suppressed=suppressed)
    if as_json:
        print_json(findings_as_json(findings))
    else:
        show_findings(plan, findings)
    raise click.exceptions.Exit(EXIT_CODES[verdict(findings)])
