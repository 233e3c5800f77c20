"""Finds and stops a cluster's jobs in queues of AWS Batch, and its training jobs and warm pools in SageMaker."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_core.engines.parts import Workloads
from trainium_core.engines.sagemaker.aws_service_jobs import ServiceJobs
from trainium_core.engines.sagemaker.jobs.states import ENDED
from trainium_core.naming import job_id_prefix, training_job_prefix
from trainium_core.teardown.leftovers import Workload
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_QUEUED, _JOB, _WARM_POOL = "queued job", "training job", "warm pool"
"""Kinds of workloads. Queued jobs are those of AWS Batch, also while they run. A warm pool has the name of the training
job that it ran."""

_RUNNING = ("InProgress", "Stopping")
_WARM = "Available"
_ALREADY_ENDED = ("is in status",)
"""Part of SageMaker's error about a workload that ended before it was stopped."""


def _running(account: AwsService, cluster: str) -> Iterator[Workload]:
    """Jobs in queues with an ID of the cluster, and training jobs and warm pools with its name and tag."""
    for job in ServiceJobs(account).named(f"{job_id_prefix(cluster)}*"):
        if job["status"] not in ENDED:
            yield Workload(kind=_QUEUED, work_id=job["jobId"], stopping=job.get("isTerminated", False))
    for status in _RUNNING:
        for entry in _jobs(account, cluster, StatusEquals=status):
            yield Workload(kind=_JOB, work_id=entry["TrainingJobName"], stopping=status == "Stopping")
    for entry in _jobs(account, cluster, WarmPoolStatusEquals=_WARM):
        if entry.get("WarmPoolStatus", {}).get("Status") == _WARM:
            yield Workload(kind=_WARM_POOL, work_id=entry["TrainingJobName"])


def _jobs(account: AwsService, cluster: str, **condition: str) -> Iterator[Mapping[str, Any]]:
    """Jobs with the cluster's name prefix and tag. NameContains also finds the prefix within other names."""
    prefix = training_job_prefix(cluster)
    with read_errors("sagemaker:ListTrainingJobs"):
        pages = account.client("sagemaker").get_paginator("list_training_jobs")
        named = [
            entry
            for page in pages.paginate(NameContains=prefix, **condition)
            for entry in page["TrainingJobSummaries"]
            if entry["TrainingJobName"].startswith(prefix)
        ]
    yield from (entry for entry in named if _job_cluster(account, entry["TrainingJobArn"]) == cluster)


def _job_cluster(account: AwsService, job_arn: str) -> str | None:
    with read_errors("sagemaker:ListTags"):
        pages = account.client("sagemaker").get_paginator("list_tags").paginate(ResourceArn=job_arn)
        return tag_values(tag for page in pages for tag in page["Tags"]).get(CLUSTER_TAG)


def _end_queued(account: AwsService, job_id: str) -> None:
    ServiceJobs(account).terminate(job_id, "trn destroy")


def _stop_job(account: AwsService, name: str) -> None:
    with write_errors("sagemaker:StopTrainingJob", absent=_ALREADY_ENDED):
        account.client("sagemaker").stop_training_job(TrainingJobName=name)


def _end_warm_pool(account: AwsService, name: str) -> None:
    with write_errors("sagemaker:UpdateTrainingJob", absent=_ALREADY_ENDED):
        released = {"KeepAlivePeriodInSeconds": 0}
        account.client("sagemaker").update_training_job(TrainingJobName=name, ResourceConfig=released)


WORKLOADS = Workloads(
    running=_running,
    stop={_QUEUED: _end_queued, _JOB: _stop_job, _WARM_POOL: _end_warm_pool},
    resource_type="AWS::Batch::ServiceEnvironment",
)
