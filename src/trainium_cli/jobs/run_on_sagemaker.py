"""`trn run --on sagemaker`: the job of a cluster as a training job."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from trainium_cli.jobs.sagemaker_job_options import JobOptions, read_job_plan
from trainium_cli.jobs.sagemaker_run_command import train
from trainium_cli.plan_options import refuse
from trainium_core.engines.sagemaker.jobs.from_request import check_for_sagemaker
from trainium_core.engines.sagemaker.jobs.job import job_name
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import pack_source
from trainium_core.plan import Plan

_MINUTES = 60


def run_on_sagemaker(
    request: JobRequest,
    given: Mapping[str, Any],
    shown: Mapping[str, str],
    *,
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    stack: str | None,
    suppressed: frozenset[str],
    dry_run: bool,
    detach: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Check, show, start and follow it, as `trn sagemaker run` does; ends the command.

    given: the raw values by their keys. shown: how a key is called where it was given. suppressed: checks that do not
    count.
    """
    if as_json and not (yes or dry_run):
        raise click.UsageError("--json asks no questions: give --yes as well")
    plan = read_job_plan(cdk_json, overrides, as_json=as_json)
    try:
        check_for_sagemaker(plan, request, given, shown)
        assert request.script is not None, "what is no script was refused"
        package = pack_source(request.script, None if request.source is None else Path(request.source))
    except JobError as error:
        refuse(error, as_json=as_json)
    train(
        plan,
        package,
        _options(plan, request, stack, package.script),
        request.arguments,
        suppressed=suppressed,
        dry_run=dry_run,
        upload=False,
        detach=detach,
        yes=yes,
        as_json=as_json,
    )


def _options(plan: Plan, request: JobRequest, stack: str | None, script: str) -> JobOptions:
    name = job_name(plan, request.name or script, datetime.now(UTC))
    checkpoints = request.resume
    if request.checkpoints is not None:
        checkpoints = f"{request.checkpoints.rstrip('/')}/{request.resume or name}"
    return JobOptions(
        name=name,
        stack=stack,
        role=None,
        bucket=None,
        image=None,
        hyperparameters={},
        environment=request.environment,
        inputs=request.inputs,
        input_mode="File",
        max_hours=None if request.time_limit_minutes is None else request.time_limit_minutes / _MINUTES,
        max_wait_hours=None,
        warm_pool_minutes=0,
        spot=None,
        training_plan=None,
        checkpoints=checkpoints,
        no_checkpoints=False,
        subnets=(),
        security_groups=(),
    )
