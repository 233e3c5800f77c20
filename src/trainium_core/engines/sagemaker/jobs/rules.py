"""Rules for a plan and a training job: jobs that SageMaker would refuse, and options that would have no effect."""

import re
from collections.abc import Callable, Iterator

from trainium_core.engines.sagemaker.jobs.job import TrainingJob, on_spot
from trainium_core.facts import training_facts
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.plan import Plan
from trainium_core.problems import Problem, nearest

SOURCE_CHANNEL = "code"
"""Channel of the packed source and the container entry. Its folder is below /opt/ml/input/data."""

_MAX_ARGUMENTS, _LONGEST_ARGUMENT = 100, 256
_LONGEST_VALUE = 512
_MAX_CHANNELS = 20
"""Limits of CreateTrainingJob; lengths are in characters (botocore: TrainingContainerArguments,
TrainingContainerArgument, TrainingEnvironmentValue, InputDataConfig)."""
_SHOWN_CHARACTERS = 40


def check_job(plan: Plan, job: TrainingJob) -> None:
    """Check all rules.

    Raises:
        JobError: All violated rules.
    """
    problems = [problem for rule in _RULES for problem in rule(plan, job)]
    if problems:
        raise JobError(problems)


def _capacity_is_supported(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    if plan.capacity in ("capacity-block", "reservation") and job.training_plan_arn is None:
        yield Problem(
            key="capacity",
            got=plan.capacity,
            allowed="on-demand or spot for a training job",
            fix="SageMaker cannot use EC2 reservations: pass --training-plan, or -c trn:capacity=on-demand",
        )


def _training_plan_fits(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    arn, reserved = job.training_plan_arn, training_facts()["types"]["training_plan"]
    if arn is None:
        return
    form = f"arn:aws:sagemaker:{plan.region}:ACCOUNT:training-plan/NAME"
    if not re.fullmatch(rf"arn:aws[a-z-]*:sagemaker:{plan.region}:[0-9]{{12}}:training-plan/.+", arn):
        yield JobProblem(
            key="--training-plan", got=arn, allowed=form, fix="specify the ARN of a training plan in the job's region"
        )
    if plan.instance_type not in reserved:
        yield JobProblem(
            key="--training-plan",
            got=arn,
            allowed=f"no value with {plan.instance_type}: training plans reserve {', '.join(reserved)}",
            nearest=nearest(plan.instance_type, reserved),
            fix="remove it, or set trn:instance_type to one of these types",
        )


def _time_is_allowed(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    hours = plan.sagemaker.max_runtime_hours
    if job.max_minutes > hours * 60:
        yield JobProblem(
            key="--time-limit-minutes",
            got=job.max_minutes,
            allowed=f"up to {hours * 60}, which is trn:sagemaker_max_runtime_hours",
            fix=f"choose {hours * 60} or less, or raise trn:sagemaker_max_runtime_hours",
        )


def _wait_is_for_spot(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    if job.spot_wait_minutes is not None and not on_spot(plan, job.training_plan_arn):
        if job.training_plan_arn is None:
            allowed, fix = "no value without spot capacity", "remove it, or pass -c trn:capacity=spot"
        else:
            allowed, fix = "no value with --training-plan", "remove it: a training plan does not use spot capacity"
        yield JobProblem(key="--spot-wait-minutes", got=job.spot_wait_minutes, allowed=allowed, fix=fix)


def _warm_pool_is_allowed(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    longest, minutes = training_facts()["time"]["longest_warm_pool_minutes"], job.warm_pool_minutes
    if minutes > longest:
        fix = f"choose {longest} or less"
        yield JobProblem(key="--warm-pool-minutes", got=minutes, allowed=f"from 0 to {longest}", fix=fix)
    elif minutes and on_spot(plan, job.training_plan_arn):
        fix = "remove it, or pass -c trn:capacity=on-demand: SageMaker keeps no spot instances"
        yield JobProblem(key="--warm-pool-minutes", got=minutes, allowed="no value with spot capacity", fix=fix)


def _arguments_are_lines(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    for text in job.arguments:
        if "\n" in text:
            fix = "SageMaker does not accept line breaks: put the text into a file of the source folder"
            yield JobProblem(key="ARGUMENTS", got=text, allowed="text of one line", fix=fix)


def _arguments_are_short(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    fix = "SageMaker does not accept more: put the arguments into a file of the source folder"
    if len(job.arguments) > _MAX_ARGUMENTS:
        got = f"{len(job.arguments)} arguments"
        yield JobProblem(key="ARGUMENTS", got=got, allowed=f"up to {_MAX_ARGUMENTS} arguments", fix=fix)
    for text in job.arguments:
        if len(text) > _LONGEST_ARGUMENT:
            got = f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"
            allowed = f"up to {_LONGEST_ARGUMENT} characters for each argument"
            yield JobProblem(key="ARGUMENTS", got=got, allowed=allowed, fix=fix)


def _variables_are_short(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    for name, value in job.environment.items():
        if len(value) > _LONGEST_VALUE:
            yield JobProblem(
                key="--env",
                got=f"{name} with {len(value)} characters",
                allowed=f"values of up to {_LONGEST_VALUE} characters",
                fix="SageMaker does not accept more: put the value into a file of the source folder",
            )


def _inputs_are_few(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    most = _MAX_CHANNELS - 1
    if len(job.inputs) > most:
        allowed = f"up to {most} inputs: the packed source is in another channel"
        fix = "put several inputs below one folder in S3"
        yield JobProblem(key="--input", got=f"{len(job.inputs)} inputs", allowed=allowed, fix=fix)


def _inputs_are_folders(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    for name, place in job.inputs.items():
        if not place.startswith("s3://") or not place.endswith("/"):
            fix = "specify the URL of a folder in S3 that the job's role can read, ending with /; copy local data there"
            allowed = "folders in S3 on sagemaker, such as s3://my-data/tokens/"
            yield JobProblem(key="--input", got=f"{name} = {place}", allowed=allowed, fix=fix)


def _no_input_has_the_source_channel(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    if SOURCE_CHANNEL in job.inputs:
        fix = "choose another name: the packed source is in the channel of that name"
        yield JobProblem(key="--input", got=SOURCE_CHANNEL, allowed=f"any name but {SOURCE_CHANNEL}", fix=fix)


_RULES: tuple[Callable[[Plan, TrainingJob], Iterator[Problem]], ...] = (
    _capacity_is_supported,
    _training_plan_fits,
    _time_is_allowed,
    _wait_is_for_spot,
    _warm_pool_is_allowed,
    _arguments_are_lines,
    _arguments_are_short,
    _variables_are_short,
    _inputs_are_few,
    _inputs_are_folders,
    _no_input_has_the_source_channel,
)
