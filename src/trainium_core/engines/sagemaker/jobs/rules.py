"""What must hold between a plan and a training job: what SageMaker would refuse, or would bill for in vain."""

import re
from collections.abc import Callable, Iterator

from trainium_core.engines.sagemaker.jobs.images import image_tags, parsed_image
from trainium_core.engines.sagemaker.jobs.job import LONGEST_NAME, TrainingJob, sagemaker_type
from trainium_core.engines.sagemaker.jobs.source_channel import SOURCE_CHANNEL
from trainium_core.facts import training_facts
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.naming import training_job_prefix
from trainium_core.plan import Plan
from trainium_core.problems import Problem, nearest
from trainium_core.setting_schema.setting import BUCKET_NAME


def check_job(plan: Plan, job: TrainingJob) -> None:
    """Raises JobError with every rule that plan and job break."""
    problems = [problem for rule in _RULES for problem in rule(plan, job)]
    if problems:
        raise JobError(problems)


def _type_is_one_of_sagemakers(plan: Plan, _: TrainingJob) -> Iterator[Problem]:
    known = training_facts()["types"]["training"]
    if plan.instance_type not in known:
        close = nearest(plan.instance_type, known)
        yield Problem(
            key="instance_type",
            got=plan.instance_type,
            allowed=f"a type that training jobs can have: {', '.join(known)}",
            nearest=close,
            fix=f"SageMaker has no {sagemaker_type(plan.instance_type)} for training jobs: choose "
            f"{close or 'one of the allowed types'}, or deploy TrnClusterStack",
        )


def _name_is_one_of_the_clusters(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    prefix = training_job_prefix(plan.cluster_name)
    if not re.fullmatch(rf"{re.escape(prefix)}[a-zA-Z0-9](-*[a-zA-Z0-9])*", job.name):
        fix = f"write {prefix}NAME: the role of the stack lets only such jobs write logs"
        yield JobProblem(key="--name", got=job.name, allowed=f"{prefix}, then letters, digits and hyphens", fix=fix)
    elif len(job.name) > LONGEST_NAME:
        fix = f"leave out {len(job.name) - LONGEST_NAME} of its {len(job.name)}"
        yield JobProblem(key="--name", got=job.name, allowed=f"up to {LONGEST_NAME} characters", fix=fix)


def _image_is_one_that_sagemaker_pulls(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    image, form = parsed_image(job.image), f"ACCOUNT.dkr.ecr.{plan.region}.amazonaws.com/NAME:TAG"
    if image is None:
        close = nearest(job.image, image_tags())
        yield JobProblem(
            key="--image",
            got=job.image,
            allowed=f"{form}, a private image of ECR, or a tag of AWS's: {', '.join(image_tags())}",
            nearest=close,
            fix=f"write {close}" if close else "push the image to ECR, and give its whole URI with the tag or digest",
        )
    elif image.region != plan.region:
        fix = f"push it to ECR in {plan.region}: SageMaker pulls from the region of the job alone"
        yield JobProblem(key="--image", got=job.image, allowed=form, fix=fix)


def _capacity_is_one_of_sagemakers(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    if plan.capacity in ("capacity-block", "reservation") and job.training_plan_arn is None and job.spot is None:
        yield Problem(
            key="capacity",
            got=plan.capacity,
            allowed="on-demand or spot for a training job",
            fix="what EC2 reserved is of no use to SageMaker: give --training-plan, --on-demand or --spot",
        )


def _training_plan_fits(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    arn, reserved = job.training_plan_arn, training_facts()["types"]["training_plan"]
    if arn is None:
        return
    form = f"arn:aws:sagemaker:{plan.region}:ACCOUNT:training-plan/NAME"
    if not re.fullmatch(rf"arn:aws[a-z-]*:sagemaker:{plan.region}:[0-9]{{12}}:training-plan/.+", arn):
        yield JobProblem(key="--training-plan", got=arn, allowed=form, fix="give the ARN of a plan in the job's region")
    if plan.instance_type not in reserved and plan.instance_type in training_facts()["types"]["training"]:
        yield JobProblem(
            key="--training-plan",
            got=arn,
            allowed=f"nothing with {plan.instance_type}: training plans reserve {', '.join(reserved)}",
            nearest=nearest(plan.instance_type, reserved),
            fix="remove it, or set trn:instance_type to one of these",
        )
    if job.spot:
        fix = "remove --spot: the plan has paid for its capacity"
        yield JobProblem(key="--spot", got=True, allowed="nothing with --training-plan", fix=fix)


def _spot_needs_checkpoints(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    if job.on_spot(plan) and job.checkpoint_url is None:
        yield JobProblem(
            key="--checkpoints",
            got=None,
            allowed="an S3 URL, with spot capacity",
            fix="a job that is interrupted begins anew without them: remove --no-checkpoints, or use --on-demand",
        )


def _wait_is_for_spot(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    wait = job.max_wait_hours
    if wait is None:
        return
    if not job.on_spot(plan):
        fix = "remove it, or give --spot"
        yield JobProblem(key="--max-wait-hours", got=wait, allowed="nothing without spot capacity", fix=fix)
    elif wait < job.max_hours:
        fix = f"it counts waiting and running together: give {job.max_hours:g} or more"
        yield JobProblem(key="--max-wait-hours", got=wait, allowed=f"{job.max_hours:g} or more (--max-hours)", fix=fix)


def _hours_are_allowed(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    longest = training_facts()["time"]["longest_hours"]
    shortest = 1 / 3600
    if not shortest <= job.max_hours <= longest:
        fix = f"choose up to {longest} hours; a job that needs longer resumes from its checkpoints in a second one"
        yield JobProblem(key="--max-hours", got=job.max_hours, allowed=f"more than 0, up to {longest}", fix=fix)


def _warm_pool_is_allowed(plan: Plan, job: TrainingJob) -> Iterator[Problem]:
    longest, minutes = training_facts()["time"]["longest_warm_pool_minutes"], job.warm_pool_minutes
    if not 0 <= minutes <= longest:
        fix = f"choose {longest} or fewer"
        yield JobProblem(key="--warm-pool-minutes", got=minutes, allowed=f"from 0 to {longest}", fix=fix)
    elif minutes and job.on_spot(plan):
        fix = "remove it, or give --on-demand: SageMaker keeps no spot instances"
        yield JobProblem(key="--warm-pool-minutes", got=minutes, allowed="nothing with spot capacity", fix=fix)


def _network_is_whole(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    for key, given, other in (
        ("--security-group", job.security_group_ids, job.subnet_ids),
        ("--subnet", job.subnet_ids, job.security_group_ids),
    ):
        if other and not given:
            fix = "give subnets and security groups together, or neither"
            yield JobProblem(key=key, got=None, allowed="one id or more in a VPC", fix=fix)


def _urls_are_of_s3(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    urls = {"--source-url": job.source_url, "--output-url": job.output_url, "--cache-url": job.cache_url}
    urls |= {"--checkpoints": job.checkpoint_url} | {f"--input {name}": url for name, url in job.inputs.items()}
    for key, url in urls.items():
        if url is not None and not re.fullmatch(rf"s3://{BUCKET_NAME}(/.*)?", url):
            fix = "write s3://, the bucket and the folder"
            yield JobProblem(key=key, got=url, allowed="an S3 URL, such as s3://bucket/folder", fix=fix)


def _what_the_script_is_given_are_lines(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    given = [(f"hyperparameter {name}", f"{name}{value}", value) for name, value in job.hyperparameters.items()]
    given += [("an argument of the script", text, text) for text in job.arguments]
    for key, text, value in given:
        if "\n" in text:
            fix = "SageMaker takes no line break: put the text into a file of the source folder"
            yield JobProblem(key=key, got=value, allowed="text of one line", fix=fix)


def _source_channel_is_ours(_: Plan, job: TrainingJob) -> Iterator[Problem]:
    if SOURCE_CHANNEL in job.inputs:
        fix = "choose another name: the packed source is in the channel of that name"
        yield JobProblem(key="--input", got=SOURCE_CHANNEL, allowed=f"any name but {SOURCE_CHANNEL}", fix=fix)


_RULES: tuple[Callable[[Plan, TrainingJob], Iterator[Problem]], ...] = (
    _type_is_one_of_sagemakers,
    _name_is_one_of_the_clusters,
    _image_is_one_that_sagemaker_pulls,
    _capacity_is_one_of_sagemakers,
    _training_plan_fits,
    _spot_needs_checkpoints,
    _wait_is_for_spot,
    _hours_are_allowed,
    _warm_pool_is_allowed,
    _network_is_whole,
    _urls_are_of_s3,
    _what_the_script_is_given_are_lines,
    _source_channel_is_ours,
)
