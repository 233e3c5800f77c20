"""The stack of SageMaker training jobs in moto, a job in it, and answers about it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.stub import Stubber

from tests.core.aws_stubs import client, create_bucket, create_queue, put_record, stack_record
from tests.core.jobs import ROLE
from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.aws_jobs import PreparedTrainingJob, SageMakerJobs
from trainium_core.jobs.follow import JobFollower, LogLine
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_runtime.aws_service import Clients

GROUP = "/aws/sagemaker/TrainingJobs"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAME = "trn-pilot--train-20261121-120000"
PLAN = from_settings(nodes=2, stacks=("sagemaker",))
STACK = "SageMakerTrainingStack"
MINUTE = int(datetime.now(UTC).timestamp() // 60 * 60_000)
"""The time of all events of logs, without their seconds: in milliseconds since 1970."""


def deploy(**values: Any) -> None:
    more = {"engine": "sagemaker", "bucket": "trn-bucket", "group": None, "role_arn": ROLE, **values}
    put_record(stack_record(STACK, **more))
    create_bucket("trn-bucket")
    create_queue()


def prepared(jobs: SageMakerJobs, package: SourcePackage, **asked: Any) -> PreparedTrainingJob:
    return jobs.prepare(JobRequest(script=Path("train.py"), **asked), package, NOON)


def request_of(made: PreparedTrainingJob) -> dict[str, Any]:
    """The request to SageMaker, which AWS Batch passes on."""
    return json.loads(made.request["serviceRequestPayload"])


def stubbed(service: str) -> tuple[SageMakerJobs, Stubber]:
    jobs = SageMakerJobs(PLAN, STACK, Clients())
    stub = Stubber(jobs.store.client(service))
    stub.activate()
    return jobs, stub


def described(*stages: str, status: str = "InProgress", **more: Any) -> dict[str, Any]:
    """A response of DescribeTrainingJob: each stage takes a minute, and the last one has not ended."""
    begun = [NOON + timedelta(minutes=minute) for minute in range(len(stages) + 1)]
    transitions = [
        {"Status": name, "StartTime": begun[n], **({"EndTime": begun[n + 1]} if n + 1 < len(stages) else {})}
        for n, name in enumerate(stages)
    ]
    return {
        "TrainingJobName": NAME,
        "TrainingJobStatus": status,
        "SecondaryStatus": stages[-1],
        "SecondaryStatusTransitions": transitions,
        "CreationTime": NOON,
        "Environment": {"TRN_JOB": NAME},
        "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2},
        **more,
    }


def write(stream: str, *texts: str, second: int = 0) -> None:
    logs = client("logs")
    if not logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]:
        logs.create_log_group(logGroupName=GROUP)
    if not logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=stream)["logStreams"]:
        logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
    at = MINUTE + second * 1000
    events = [{"timestamp": at + n, "message": text} for n, text in enumerate(texts)]
    logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)


def printed(jobs: SageMakerJobs, *, to_the_end: bool = True) -> list[tuple[str | None, str]]:
    events = JobFollower(NAME, jobs, pause=lambda _: None).events(to_the_end=to_the_end)
    return [(event.node, event.text) for event in events if isinstance(event, LogLine)]
