"""Requests about the service jobs of AWS Batch, which wait in a queue and become training jobs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from trainium_core.engines.sagemaker.jobs.queue import JobQueue
from trainium_core.jobs.engine import StartUnknownError
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.naming import CLUSTER_TAG

_TYPE = "SAGEMAKER_TRAINING"
_UNKNOWN = ("does not exist", "not found")


class ServiceJobs:
    """The service jobs of a region. Reads raise UnavailableError, changes RequestRefusedError."""

    def __init__(self, account: AwsService) -> None:
        self._account = account

    def queues(self) -> Sequence[JobQueue]:
        """The job queues for training jobs."""
        with read_errors("batch:DescribeJobQueues"):
            pages = self._account.client("batch").get_paginator("describe_job_queues").paginate()
            return [
                _queue(entry) for page in pages for entry in page["jobQueues"] if entry.get("jobQueueType") == _TYPE
            ]

    def named(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Summaries of the jobs in all queues with a name, or, if it ends with `*`, with its beginning; newest first.

        AWS Batch keeps jobs that have ended for at least seven days (AWS Batch User Guide, Job states).
        """
        named = {"name": "JOB_NAME", "values": [name]}
        found: list[Mapping[str, Any]] = []
        for queue in self.queues():
            with read_errors("batch:ListServiceJobs"):
                pages = self._account.client("batch").get_paginator("list_service_jobs")
                for page in pages.paginate(jobQueue=queue.arn, filters=[named]):
                    found += page["jobSummaryList"]
        # AWS Batch ignores case.
        matches = (one for one in found if _matches(one["jobName"], name))
        return iter(sorted(matches, key=lambda one: one.get("createdAt", 0), reverse=True))

    def described(self, job_id: str) -> Mapping[str, Any] | None:
        """The description of a job, by the ID that AWS Batch assigned."""
        with read_errors("batch:DescribeServiceJob", absent=_UNKNOWN):
            return self._account.client("batch").describe_service_job(jobId=job_id)
        return None

    def submit(self, request: Mapping[str, Any]) -> None:
        """Put a job into its queue.

        Raises:
            RequestRefusedError: AWS refused the request.
            StartUnknownError: AWS did not confirm that the job is in the queue.
        """
        try:
            with write_errors("batch:SubmitServiceJob"):
                self._account.client("batch").submit_service_job(**request)
        except RequestRefusedError as error:
            if _may_be_submitted(error.__cause__):
                raise StartUnknownError(str(error)) from error
            raise

    def terminate(self, job_id: str, reason: str) -> None:
        """End a job that waits or runs."""
        with write_errors("batch:TerminateServiceJob", absent=_UNKNOWN):
            self._account.client("batch").terminate_service_job(jobId=job_id, reason=reason)


def training_job_name(job: Mapping[str, Any]) -> str | None:
    """The name of the training job of the latest attempt, from a summary or a description."""
    arn: str | None = job.get("latestAttempt", {}).get("serviceResourceId", {}).get("value")
    return None if arn is None else arn.rpartition("/")[2]


def _queue(entry: Mapping[str, Any]) -> JobQueue:
    return JobQueue(
        name=entry["jobQueueName"],
        arn=entry["jobQueueArn"],
        cluster=entry.get("tags", {}).get(CLUSTER_TAG),
        has_policy=bool(entry.get("schedulingPolicyArn")),
        enabled=entry["state"] == "ENABLED",
    )


def _matches(name: str, wanted: str) -> bool:
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def _may_be_submitted(cause: BaseException | None) -> bool:
    """Whether the job may be in the queue. AWS Batch refuses a repeated request, and boto3 may have repeated it."""
    if isinstance(cause, ClientError):
        metadata: Mapping[str, Any] = cast(Any, cause).response.get("ResponseMetadata", {})
        return metadata.get("HTTPStatusCode", 0) >= 500 or metadata.get("RetryAttempts", 0) > 0
    return isinstance(cause, ReadTimeoutError | ConnectionClosedError | ResponseParserError)
