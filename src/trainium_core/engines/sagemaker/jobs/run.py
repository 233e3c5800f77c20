"""Running a training job from Python: pack, check, upload, start and follow, in one call."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trainium_core.engines.sagemaker.jobs.follow import JobFollower
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.engines.sagemaker.jobs.source_channel import channel_digest, channel_files
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, LogLine, TrainingJobControl
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan


def packed_job(job: TrainingJob, package: SourcePackage) -> TrainingJob:
    """The job with the package's own folder below its source URL, and the script as the package names it."""
    return replace(job, source_url=f"{job.source_url.rstrip('/')}/{channel_digest(package)}/", script=package.script)


def checked_request(plan: Plan, job: TrainingJob) -> dict[str, Any]:
    """The request, held against our rules and AWS's own model of it. Raises JobError."""
    from trainium_core.engines.sagemaker.jobs.aws_request_model import check_training_job_request

    request = training_job_request(plan, job)
    check_training_job_request(request)
    return request


def start_training_job(plan: Plan, job: TrainingJob, package: SourcePackage, aws: TrainingJobControl) -> TrainingJob:
    """Upload the package and start the job; the job as it was started.

    Raises JobError, RequestRefusedError, JobUnknownError.
    """
    started = packed_job(job, package)
    request = checked_request(plan, started)
    aws.upload(started.source_url, channel_files(package))
    aws.start(request)
    return started


def run_training_job(
    plan: Plan,
    job: TrainingJob,
    package: SourcePackage,
    *,
    aws: TrainingJobControl | None = None,
    on_progress: Callable[[JobState | LogLine], None] = lambda _: None,
) -> JobState:
    """Start a job and wait for its end; `on_progress` is given each log line and each change of its state.

    aws: default the account whose credentials boto3 finds, in the plan's region.
    Raises JobError, RequestRefusedError, JobUnknownError, and UnavailableError when AWS answers no more while it runs.
    """
    if aws is None:
        from trainium_core.engines.sagemaker.jobs.aws_training_job_control import AwsTrainingJobControl

        aws = AwsTrainingJobControl(plan.region)
    start_training_job(plan, job, package, aws)
    last: JobState | None = None
    for event in JobFollower(job.name, aws).events():
        on_progress(event)
        last = event if isinstance(event, JobState) else last
    assert last is not None, "following ends with the state of a job that is over"
    return last
