"""Executions of the state machine with scripted outcomes, and a request as `trn run --dry-run` prints it."""

import copy
import json
from datetime import UTC, datetime

import boto3
import pytest

from tests.constructs.synth import a_plan
from tests.stacks.test_api_models import model_errors
from tests.state_machine.interpreter import (
    REGION,
    REPORTS_TOPIC,
    Ends,
    Execution,
    Json,
    NeverEnds,
    Outcome,
    Refused,
    execute,
)
from trainium_cdk.sagemaker.training_definition import (
    REQUIRED_FIELDS,
    START_UP_SECONDS,
    MachineSettings,
    training_definition,
)
from trainium_core.engines.sagemaker.jobs.images import training_image
from trainium_core.engines.sagemaker.jobs.job import TrainingJob, job_name
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.naming import training_job_prefix

COMPLETED = Ends("Completed", "Completed")
NO_CAPACITY = Ends(
    "Failed", "Failed", "CapacityError: Unable to provision requested ML compute capacity.", ("Starting", "Pending")
)
NO_QUOTA = Refused("SageMaker.ResourceLimitExceededException", "The account-level service limit is 0 Instances")
THROTTLED = Refused("SageMaker.AmazonSageMakerException", "Rate exceeded (Service: AmazonSageMaker)")
RUN = MachineSettings(
    job_prefix="trn-pilot--",
    role_arn="arn:aws:iam::123456789012:role/execution",
    topic_arn=REPORTS_TOPIC,
    checkpoint_url="s3://store/checkpoints",
    network={"Subnets": ["subnet-0123456789abcdef0"], "SecurityGroupIds": ["sg-0123456789abcdef0"]},
    max_runtime_hours=24,
    capacity_retries=3,
    tags={"trn:cluster": "trn-pilot"},
)


def a_request(**changes: object) -> Json:
    plan = a_plan()
    job = TrainingJob(
        name=job_name(plan, "train.py", datetime(2026, 11, 21, tzinfo=UTC)),
        script="train.py",
        image=training_image(plan.region),
        role_arn="arn:aws:iam::123456789012:role/another",
        source_url="s3://store/source/train",
        output_url="s3://store/output",
    )
    return training_job_request(plan, job) | changes


def run(
    *outcomes: Outcome, request: Json | None = None, definition: Json | None = None, stopping: Refused | None = None
) -> Execution:
    return execute(definition or training_definition(RUN), request or a_request(), outcomes, stopping=stopping)


@pytest.fixture(scope="module")
def completed() -> Execution:
    return run(COMPLETED)


def test_completed_job_completes_the_run(completed: Execution) -> None:
    assert completed.status == "SUCCEEDED"
    assert completed.output["TrainingJobStatus"] == "Completed"


def test_completed_run_is_reported_with_its_output_url(completed: Execution) -> None:
    (report,) = completed.reports
    assert report == f"{completed.jobs[0]['TrainingJobName']} completed; its output is below s3://store/output"


def test_request_to_sagemaker_is_valid_for_its_api(completed: Execution) -> None:
    operation = boto3.client("sagemaker", REGION).meta.service_model.operation_model("CreateTrainingJob")
    assert model_errors(operation, completed.jobs[0]) == []


def test_state_machine_replaces_name_and_role_and_adds_the_network(completed: Execution) -> None:
    (job,), request = completed.jobs, a_request()
    assert {name for name in request if job[name] != request[name]} == {"TrainingJobName", "RoleArn"}
    assert job["RoleArn"] == RUN.role_arn
    assert job["VpcConfig"] == RUN.network


def test_each_run_gets_its_own_default_checkpoint_url(completed: Execution) -> None:
    urls = {execution.jobs[0]["CheckpointConfig"]["S3Uri"] for execution in (completed, run(COMPLETED))}
    assert len(urls) == 2
    assert all(url.startswith("s3://store/checkpoints/") for url in urls)
    assert len({job["CheckpointConfig"]["S3Uri"] for job in run(NO_CAPACITY, COMPLETED).jobs}) == 1


def test_job_may_have_its_own_checkpoint_url() -> None:
    own_checkpoints = {"S3Uri": "s3://store/checkpoints/mine", "LocalPath": "/opt/ml/checkpoints"}
    assert (
        run(COMPLETED, request=a_request(CheckpointConfig=own_checkpoints)).jobs[0]["CheckpointConfig"]
        == own_checkpoints
    )


def test_longest_cluster_name_leaves_room_in_job_names() -> None:
    longest = MachineSettings(**{**vars(RUN), "job_prefix": training_job_prefix("c" * 32)})
    name = run(COMPLETED, definition=training_definition(longest)).jobs[0]["TrainingJobName"]
    assert len(name) <= 63


@pytest.mark.parametrize("outcome", [NO_CAPACITY, NO_QUOTA], ids=["capacity", "quota"])
def test_missing_capacity_or_quota_is_retried_with_a_new_job(outcome: Outcome) -> None:
    execution = run(outcome, outcome, COMPLETED)
    assert execution.status == "SUCCEEDED"
    assert [job["TrainingJobName"].rsplit("-", 1)[1] for job in execution.jobs] == ["1", "2", "3"]


def test_no_pause_is_longer_than_an_hour() -> None:
    many = MachineSettings(**{**vars(RUN), "capacity_retries": 6})
    pauses = run(*[NO_CAPACITY] * 6, COMPLETED, definition=training_definition(many)).pauses
    assert pauses == [300, 600, 1200, 2400, 3600, 3600]


@pytest.mark.parametrize("outcome", [NO_CAPACITY, NO_QUOTA], ids=["capacity", "quota"])
def test_run_fails_after_the_last_retry_with_the_reason(outcome: Ends | Refused) -> None:
    execution = run(*[outcome] * (RUN.capacity_retries + 1))
    assert execution.status == "FAILED"
    assert len(execution.jobs) == RUN.capacity_retries + 1
    assert len(execution.pauses) == RUN.capacity_retries
    assert execution.cause.startswith("There was no capacity or quota for trn-pilot--")
    reason = outcome.failure_reason if isinstance(outcome, Ends) else outcome.cause
    assert execution.cause.endswith(f"in 4 attempts: {reason}")


def test_throttled_call_is_retried_under_the_same_name() -> None:
    execution = run(THROTTLED, THROTTLED, COMPLETED)
    assert execution.status == "SUCCEEDED"
    assert len({job["TrainingJobName"] for job in execution.jobs}) == 1


def test_report_says_that_a_throttled_call_may_have_started_the_job() -> None:
    execution = run(THROTTLED, Refused("SageMaker.ResourceInUseException", "the name is in use"))
    assert execution.status == "FAILED"
    assert "An earlier call may have started it, and it may be billed until it ends" in execution.reports[0]


@pytest.mark.parametrize(
    ("reason", "hyperparameters"),
    [
        ("CapacityError: raised by the script itself", {}),
        ("AlgorithmError: Exit Code: 1", {"note": "CapacityError", "CapacityError": "1"}),
    ],
    ids=["the whole reason", "in a hyperparameter"],
)
def test_failure_of_the_script_starts_no_other_job(reason: str, hyperparameters: Json) -> None:
    execution = run(Ends("Failed", "Failed", reason), request=a_request(HyperParameters=hyperparameters))
    assert (execution.status, execution.error, len(execution.jobs), execution.pauses) == (
        *("FAILED", "TrainingDidNotComplete", 1),
        [],
    )
    assert execution.cause.endswith(f"-1 failed: {reason}")
    assert execution.reports == [execution.cause]


def test_stopped_job_does_not_count_as_completed() -> None:
    execution = run(Ends("Stopped", "MaxRuntimeExceeded"))
    assert execution.status == "FAILED"
    assert execution.cause.endswith("ended Stopped (MaxRuntimeExceeded)")


def with_short_timeout() -> Json:
    definition = training_definition(RUN)
    definition["States"]["Train"]["TimeoutSeconds"] = 1
    return definition


def test_job_that_cannot_be_stopped_is_not_reported_as_stopped() -> None:
    error = Refused("SageMaker.SageMakerException", "the job is in status Stopping")
    execution = run(NeverEnds(), definition=with_short_timeout(), stopping=error)
    assert len(execution.stopped) == 4
    assert "was stopped" not in execution.cause
    assert execution.cause.endswith(
        "It may keep running, and be billed: SageMaker.SageMakerException the job is in status Stopping"
    )
    assert execution.reports == [execution.cause]


def test_job_that_does_not_end_is_stopped_and_reported() -> None:
    execution = run(NeverEnds(), definition=with_short_timeout())
    assert execution.status == "FAILED"
    assert execution.stopped == [execution.jobs[0]["TrainingJobName"]]
    assert "was stopped: it had not ended 60 minutes after its maximum run time of 24 hours" in execution.reports[0]


def test_timeout_is_the_maximum_run_time_and_the_overhead_of_a_job() -> None:
    assert training_definition(RUN)["States"]["Train"]["TimeoutSeconds"] == 24 * 3600 + START_UP_SECONDS


def test_request_above_the_maximum_run_time_starts_nothing() -> None:
    execution = run(request=a_request(StoppingCondition={"MaxRuntimeInSeconds": 24 * 3600 + 1}))
    assert (execution.status, execution.jobs) == ("FAILED", [])
    assert "MaxRuntimeInSeconds is 86401; allowed: up to 86400 " in execution.reports[0]


@pytest.mark.parametrize("path", REQUIRED_FIELDS)
def test_incomplete_request_starts_nothing(path: str) -> None:
    request = copy.deepcopy(a_request())
    del request[path.split(".")[0]]
    execution = run(request=request)
    assert (execution.status, execution.jobs) == ("FAILED", [])
    assert path in execution.reports[0]


def test_failed_report_does_not_change_the_outcome() -> None:
    without_topic = json.loads(
        json.dumps(training_definition(RUN)).replace(REPORTS_TOPIC, f"{REPORTS_TOPIC}-that-is-missing")
    )
    execution = run(COMPLETED, definition=without_topic)
    assert (execution.status, execution.reports) == ("SUCCEEDED", [])
