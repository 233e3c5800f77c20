"""The options that describe a training job, and the job that they and the plan come to."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import refuse
from trainium_cli.terminal import print_json
from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.engines.sagemaker.job_checks.aws_account import AwsSageMakerAccount
from trainium_core.engines.sagemaker.jobs.images import image_tags, training_image
from trainium_core.engines.sagemaker.jobs.job import TrainingJob, job_name
from trainium_core.engines.sagemaker.jobs.locations import (
    JobLocations,
    locations_from_outputs,
    locations_in_bucket,
    no_stack,
)
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.plan import Plan
from trainium_core.plan.context import plan_from_file
from trainium_core.problems import PlanError
from trainium_runtime.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What the options say; None, or nothing, where one was not given."""

    name: str | None
    stack: str | None
    role: str | None
    bucket: str | None
    image: str | None
    hyperparameters: Mapping[str, str]
    environment: Mapping[str, str]
    inputs: Mapping[str, str]
    input_mode: str
    max_hours: float | None
    max_wait_hours: float | None
    warm_pool_minutes: int
    spot: bool | None
    training_plan: str | None
    checkpoints: str | None
    no_checkpoints: bool
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]


def _pairs(_ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    split = [text.partition("=") for text in given]
    for text, (key, separator, _) in zip(given, split, strict=True):
        if not separator or not key:
            raise click.BadParameter(f"{text!r} is not {param.metavar}")
    return {key: value for key, _, value in split}


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("--name", help="Name of the job; begins with the cluster's. Default: cluster, script and time."),
    click.option(
        "--stack",
        metavar="NAME",
        help="Stack in CloudFormation whose role, buckets and network the job uses. Default: the one of the cluster's "
        "name, `trn list`.",
    ),
    click.option("--role", metavar="ARN", help="Execution role of your own, in place of the stack's."),
    click.option("--bucket", help="Bucket of your own for source, output, checkpoints and compile cache."),
    click.option(
        "--image", metavar="URI|TAG", help="Container image of your own, or a tag of AWS's. Default: AWS's last one."
    ),
    click.option(
        "--hyperparameter",
        "hyperparameters",
        multiple=True,
        callback=_pairs,
        metavar="NAME=VALUE",
        help="Given to the script as --NAME VALUE, and shown by SageMaker. Can be repeated.",
    ),
    click.option(
        "--env",
        "environment",
        multiple=True,
        callback=_pairs,
        metavar="NAME=VALUE",
        help="Environment variable of the container. No secrets: SageMaker shows them. Can be repeated.",
    ),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        callback=_pairs,
        metavar="NAME=S3URL",
        help="Data for the job, below /opt/ml/input/data/NAME. Can be repeated.",
    ),
    click.option(
        "--input-mode",
        type=click.Choice(["File", "FastFile"]),
        default=TrainingJob.input_mode,
        show_default=True,
        help="Whether data is copied before the start, or read from S3 when it is needed.",
    ),
    click.option(
        "--max-hours", type=float, help="Hours after which SageMaker stops it. Default: trn:sagemaker_budget_hours."
    ),
    click.option(
        "--max-wait-hours", type=float, help="Hours for waiting and running together, on spot. Default: twice those."
    ),
    click.option(
        "--warm-pool-minutes",
        type=int,
        default=TrainingJob.warm_pool_minutes,
        show_default=True,
        help="Keep the instances, and pay for them, for a next job.",
    ),
    click.option("--spot/--on-demand", default=None, help="How capacity is bought. Default: as trn:capacity says."),
    click.option("--training-plan", metavar="ARN", help="Run in a training plan that was bought for training jobs."),
    click.option(
        "--checkpoints",
        metavar="URL|JOB",
        help="Where checkpoints are kept: an S3 URL, or an earlier job to go on from. Default: a folder of its own.",
    ),
    click.option("--no-checkpoints", is_flag=True, help="Keep none."),
    click.option("--subnet", "subnets", multiple=True, help="Subnet of your own. Can be repeated."),
    click.option("--security-group", "security_groups", multiple=True, help="Security group of your own. Repeatable."),
)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Every option of a job; the command is given them as one JobOptions, `options`."""
    names = [known.name for known in fields(JobOptions)]

    @wraps(command)
    def with_options(**given: Any) -> Any:
        options = JobOptions(**{name: given.pop(name) for name in names})
        return command(options=options, **given)

    wrapped: Callable[..., Any] = with_options
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def read_job_plan(cdk_json: Path | None, overrides: tuple[str, ...], *, as_json: bool) -> Plan:
    """The plan that the options describe; ends the command if it is not a good one.

    Unlike with the nodes of a cluster, user data does not matter.
    """
    try:
        return plan_from_file(cdk_json, overrides)
    except PlanError as error:
        refuse(error, as_json=as_json)


def job_of(
    plan: Plan, options: JobOptions, script: str, arguments: tuple[str, ...], account: AwsSageMakerAccount
) -> TrainingJob:
    """The job; asks the account for the stack's outputs unless the options name role and bucket.

    Raises JobError, UnavailableError.
    """
    locations = _locations(plan, options, account)
    name = options.name or job_name(plan, script, datetime.now(UTC))
    return TrainingJob(
        name=name,
        script=script,
        image=_image(plan, options.image),
        role_arn=locations.role_arn,
        source_url=locations.source_url,
        output_url=locations.output_url,
        cache_url=locations.cache_url,
        checkpoint_url=_checkpoint_url(options, locations, name),
        arguments=arguments,
        hyperparameters=options.hyperparameters,
        environment=options.environment,
        inputs=options.inputs,
        input_mode=options.input_mode,
        max_hours=plan.sagemaker.budget_hours if options.max_hours is None else options.max_hours,
        max_wait_hours=options.max_wait_hours,
        warm_pool_minutes=options.warm_pool_minutes,
        spot=options.spot,
        training_plan_arn=options.training_plan,
        subnet_ids=options.subnets or locations.subnet_ids,
        security_group_ids=options.security_groups or locations.security_group_ids,
        # Without a key SageMaker encrypts with one of AWS's own, whatever the bucket's default is.
        kms_key=plan.sagemaker.kms_key or locations.kms_key,
    )


def could_not_tell(error: UnavailableError, what: str, *, as_json: bool) -> NoReturn:
    """End the command for want of an answer."""
    if as_json:
        print_json({"error": f"{what}: {error}"})
    click.echo(f"{what}: {error}", err=True)
    raise click.exceptions.Exit(ExitCode.UNKNOWN)


def _image(plan: Plan, given: str | None) -> str:
    chosen = given or plan.sagemaker.image
    return training_image(plan.region, chosen) if chosen is None or chosen in image_tags() else chosen


def _locations(plan: Plan, options: JobOptions, account: AwsSageMakerAccount) -> JobLocations:
    if options.role and options.bucket:
        return locations_in_bucket(options.bucket, role_arn=options.role)
    stack = options.stack or plan.stack_names[SAGEMAKER.key]
    deployed = account.deployed_stack(stack)
    if deployed is None:
        raise no_stack(stack, plan.region)
    locations = locations_from_outputs(deployed.outputs, stack)
    if options.bucket:
        own = locations_in_bucket(options.bucket, role_arn=locations.role_arn)
        return replace(own, subnet_ids=locations.subnet_ids, security_group_ids=locations.security_group_ids)
    return replace(locations, role_arn=options.role) if options.role else locations


def _checkpoint_url(options: JobOptions, locations: JobLocations, name: str) -> str | None:
    given = options.checkpoints
    if options.no_checkpoints and given:
        fix = "leave one of the two out"
        raise JobError([JobProblem(key="--checkpoints", got=given, allowed="nothing with --no-checkpoints", fix=fix)])
    if options.no_checkpoints:
        return None
    if given and "://" in given:
        return given
    if given and not re.fullmatch("[A-Za-z0-9-]+", given):
        fix = "write s3://, the bucket and the folder, or the name of a job"
        raise JobError([JobProblem(key="--checkpoints", got=given, allowed="an S3 URL, or the name of a job", fix=fix)])
    return f"{locations.checkpoint_url}/{given or name}"
