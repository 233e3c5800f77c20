"""SageMaker jobs in queues of AWS Batch: requests, refusals, states, and what SageMaker keeps longer."""

import json
from typing import Any

import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.aws_stubs import client, create_bucket, create_queue, install_queues, put_record, stack_record
from tests.core.jobs import ROLE
from tests.core.training_jobs import (
    NAME,
    NOON,
    PLAN,
    STACK,
    deploy,
    described,
    prepared,
    printed,
    request_of,
    stubbed,
)
from trainium_core.engines.sagemaker.aws_jobs import SageMakerJobs
from trainium_core.engines.sagemaker.jobs.states import ENDED, WAITING, job_entry, job_state
from trainium_core.jobs.engine import StartUnknownError
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.naming import training_job_prefix
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError

pytestmark = pytest.mark.usefixtures("made_up_credentials")


def test_request_has_one_attempt_and_a_time_limit(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    request = prepared(jobs, package, time_limit_minutes=90, priority=7).request
    assert request["jobName"] == NAME
    assert request["jobQueue"].endswith(":job-queue/trn-queue")
    assert (request["retryStrategy"], request["timeoutConfig"]) == (
        {"attempts": 1},
        {"attemptDurationSeconds": 90 * 60 + 3600},
    )
    assert request["schedulingPriority"] == 7
    assert request["shareIdentifier"].isalnum()
    assert request_of(prepared(jobs, package))["StoppingCondition"] == {"MaxRuntimeInSeconds": 24 * 3600}


def test_training_job_has_a_short_name_that_identifies_cluster_and_time(
    jobs: SageMakerJobs, package: SourcePackage
) -> None:
    deploy()
    name = request_of(prepared(jobs, package, name="a" * 60))["TrainingJobName"]
    assert name.endswith("-20261121-120000")
    # AWS Batch adds 8 characters before and 32 behind, and SageMaker allows 63.
    assert len(name) <= 63 - 8 - 32


def test_queue_without_policy_gets_neither_share_nor_priority(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    create_queue("fifo", policy=False, cluster="other")
    request = prepared(jobs, package, queue="fifo").request
    assert {"shareIdentifier", "schedulingPriority"} & request.keys() == set()
    with pytest.raises(JobError, match="no value in fifo, which has no scheduling policy"):
        prepared(jobs, package, queue="fifo", priority=1)


def test_more_instances_than_the_deployed_limit_are_refused(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy(settings={"nodes": 1})
    create_queue("other", cluster="other")
    with pytest.raises(JobError, match="up to 1, which is the deployed trn:sagemaker_max_instances"):
        prepared(jobs, package)
    assert prepared(jobs, package, queue="other").queue.name == "other"


def test_deployed_limit_overrides_the_deployed_number_of_nodes(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy(settings={"nodes": 1, "sagemaker_max_instances": 2})
    assert prepared(jobs, package).queue.name == "trn-queue"


def test_missing_queue_is_refused_with_the_existing_ones(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    with pytest.raises(JobError, match=r"a queue of AWS Batch for training jobs in us-west-2: trn-queue"):
        prepared(jobs, package, queue="trn-quee")


def test_disabled_queue_and_too_high_priority_are_refused(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    with pytest.raises(JobError, match="from 0 to 9999 on sagemaker"):
        prepared(jobs, package, priority=10_000)
    client("batch").update_job_queue(jobQueue="trn-queue", state="DISABLED")
    with pytest.raises(JobError, match="an enabled queue"):
        prepared(jobs, package)


def test_too_large_request_is_refused_before_anything_is_sent(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    with pytest.raises(JobError) as error:
        prepared(jobs, package, arguments=tuple("x" * 256 for _ in range(40)))
    assert "with 40 arguments and 0 environment variables" in str(error.value)
    assert "up to 10,240 bytes" in str(error.value)
    assert "into a file of the source folder" in str(error.value)
    assert "Contents" not in client("s3").list_objects_v2(Bucket="trn-bucket")


def test_job_that_the_plan_does_not_allow_is_refused(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    with pytest.raises(JobError, match="up to 1440, which is trn:sagemaker_max_runtime_hours"):
        prepared(jobs, package, time_limit_minutes=24 * 60 + 1)


def test_waiting_job_is_shown_with_its_reason_and_can_be_stopped(package: SourcePackage) -> None:
    install_queues()
    with mock_aws():
        jobs = SageMakerJobs(PLAN, STACK, Clients())
        put_record(stack_record(STACK, engine="sagemaker", bucket="trn-bucket", group=None, role_arn=ROLE))
        create_bucket("trn-bucket")
        create_queue(max_instances=1)
        prepared(jobs, package).submit()
        (waiting,) = jobs.newest(5)
        assert (waiting.job.id, waiting.status, waiting.is_over, waiting.attempts) == (NAME, "RUNNABLE", False, ())
        assert waiting.detail.startswith("MISCONFIGURATION:")
        assert printed(jobs, to_the_end=False) == []
        jobs.stop(NAME)
        stopped = jobs.state(NAME)
        assert stopped is not None
        assert stopped.outcome is not None
        assert (stopped.outcome.result, stopped.outcome.reason) == ("stopped", "trn stop")


def service_job(status: str, **more: Any) -> dict[str, Any]:
    """A response of DescribeServiceJob."""
    request = {"TrainingJobName": "x", "Environment": {"TRN_JOB": NAME}, "ResourceConfig": {"InstanceCount": 2}}
    times = {"createdAt": NOON.timestamp() * 1000}
    queue = "arn:aws:batch:us-west-2:123456789012:job-queue/trn-queue"
    return {"status": status, "jobQueue": queue, "serviceRequestPayload": json.dumps(request), **times, **more}


def ended(service: dict[str, Any], training: dict[str, Any]) -> tuple[str, str]:
    """Result and reason of a job."""
    outcome = job_state(job_entry(service, training)).outcome
    assert outcome is not None
    return outcome.result, outcome.reason


def test_job_without_capacity_returns_to_its_queue_and_has_not_failed() -> None:
    failed = described("Failed", status="Failed", FailureReason="CapacityError: none")
    for status in ("RUNNABLE", "SCHEDULED"):
        state = job_state(job_entry(service_job(status), failed))
        assert (state.status, state.is_over) == (status, False)


def test_job_stopped_after_a_try_without_capacity_has_the_reason_of_the_stop() -> None:
    failed = described("Failed", status="Failed", FailureReason="CapacityError: none")
    stopped = service_job("FAILED", isTerminated=True, statusReason="trn stop")
    assert ended(stopped, failed) == ("stopped", "trn stop")
    own_error = described("Failed", status="Failed", FailureReason="AlgorithmError: exit code 1")
    assert ended(stopped, own_error) == ("failed", "AlgorithmError: exit code 1")


@pytest.mark.parametrize(("seconds", "result"), [(7199, "stopped"), (7200, "time-limit")])
def test_time_limit_of_batch_is_the_result_of_a_job_that_reached_it(seconds: int, result: str) -> None:
    times = {"startedAt": 1000, "stoppedAt": 1000 + seconds * 1000}
    over = service_job("FAILED", statusReason="why", timeoutConfig={"attemptDurationSeconds": 7200}, **times)
    assert ended(over, described("Training", "Stopped", status="Stopped")) == (result, "why")


def test_terminated_job_is_stopping_until_batch_has_ended_it() -> None:
    terminated = service_job("RUNNING", isTerminated=True, statusReason="trn stop")
    for training in (described("Training"), described("Stopped", status="Stopped")):
        state = job_state(job_entry(terminated, training))
        assert (state.status, state.is_over) == ("stopping", False)


def test_training_job_determines_the_state_of_a_running_job() -> None:
    assert job_state(job_entry(service_job("RUNNING"), described("Training"))).status == "Training"
    assert ended(service_job("FAILED", statusReason="why"), described("Failed", status="Failed")) == ("failed", "why")
    for training in (described("Completed", status="Completed"), None):
        completed = job_state(job_entry(service_job("SUCCEEDED", statusReason="Job succeeded"), training)).outcome
        assert completed is not None
        assert (completed.result, completed.reason) == ("succeeded", "")
    waiting = job_state(job_entry(service_job("RUNNABLE"), None))
    assert (waiting.detail, waiting.job.nodes) == ("in the queue trn-queue", 2)


def test_states_of_service_jobs_are_those_of_the_api() -> None:
    states = {*client("batch").meta.service_model.shape_for("ServiceJobStatus").enum}
    assert {*WAITING, *ENDED} < states


def test_job_that_batch_no_longer_has_is_found_in_sagemaker(jobs: SageMakerJobs) -> None:
    create_queue()
    name = f"{training_job_prefix('trn-pilot')}20261121-120000{'0' * 32}"
    summary = {"TrainingJobName": name, "TrainingJobArn": "a", "CreationTime": NOON, "TrainingJobStatus": "Completed"}
    entry = described("Training", status="Completed") | {"TrainingJobName": name}
    sagemaker = Stubber(jobs.store.client("sagemaker"))
    for _ in range(2):
        sagemaker.add_response("list_training_jobs", {"TrainingJobSummaries": [summary]})
        sagemaker.add_response("describe_training_job", entry | MINIMAL)
    with sagemaker:
        state = jobs.state(NAME)
        assert state is not None
        assert (state.status, [one.job.id for one in jobs.newest(5)]) == ("succeeded", [NAME])


MINIMAL = {
    "TrainingJobArn": "arn:aws:sagemaker:us-west-2:123456789012:training-job/x",
    "ModelArtifacts": {"S3ModelArtifacts": "s3://trn-bucket/output"},
    "AlgorithmSpecification": {"TrainingInputMode": "File"},
    "StoppingCondition": {},
}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDeniedException", "the permission batch:SubmitServiceJob is missing"),
        ("ClientException", "AWS answered ClientException: too many"),
    ],
)
def test_refused_start_has_its_reason(code: str, says: str) -> None:
    jobs, stub = stubbed("batch")
    stub.add_client_error("submit_service_job", code, "too many")
    with pytest.raises(RequestRefusedError, match=says):
        jobs.store.service_jobs.submit(SUBMITTED)


@pytest.mark.parametrize(("status", "metadata"), [(500, {}), (400, {"RetryAttempts": 1})])
def test_unclear_start_is_not_reported_as_refused(status: int, metadata: dict[str, int]) -> None:
    jobs, stub = stubbed("batch")
    stub.add_client_error("submit_service_job", "ServerException", http_status_code=status, response_meta=metadata)
    with pytest.raises(StartUnknownError, match="ServerException"):
        jobs.store.service_jobs.submit(SUBMITTED)


SUBMITTED = {"jobName": NAME, "jobQueue": "q", "serviceJobType": "SAGEMAKER_TRAINING", "serviceRequestPayload": "{}"}


def test_largest_payload_of_escaped_text_fits_into_a_request(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    request = prepared(jobs, package, arguments=tuple('"' * 200 for _ in range(20))).request
    assert 9_000 < len(request["serviceRequestPayload"]) <= 10_240
    assert len(json.dumps(request)) < 30 * 1024
