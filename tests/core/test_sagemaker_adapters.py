"""The reads and changes that go to AWS: against moto where it answers truly, against Stubber where it does not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.aws_stubs import REGION
from tests.core.jobs import JOB
from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.job_checks.aws_account import AwsSageMakerAccount
from trainium_core.engines.sagemaker.jobs import aws_training_jobs
from trainium_core.engines.sagemaker.jobs.aws_training_job_control import AwsTrainingJobControl
from trainium_core.engines.sagemaker.jobs.aws_training_jobs import AwsTrainingJobs
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.engines.sagemaker.jobs.training_jobs import JobUnknownError, LogLine
from trainium_core.permissions.simulation import Calls
from trainium_runtime.errors import RequestRefusedError, UnavailableError

pytestmark = pytest.mark.usefixtures("credentials_of_nobody")

GROUP = "/aws/sagemaker/TrainingJobs"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def aws() -> Iterator[AwsTrainingJobControl]:
    with mock_aws():
        yield AwsTrainingJobControl(REGION)


def client(service: str) -> Any:
    return boto3.client(service, REGION)


def start(aws: AwsTrainingJobControl, name: str = JOB.name) -> None:
    aws.start(training_job_request(from_settings(nodes=2), replace(JOB, name=name)))


def stubbed(service: str) -> tuple[AwsTrainingJobControl, Stubber]:
    aws = AwsTrainingJobControl(REGION)
    stub = Stubber(aws.client(service))
    stub.activate()
    return aws, stub


def account_stub(service: str) -> tuple[AwsSageMakerAccount, Stubber]:
    account = AwsSageMakerAccount(REGION)
    stub = Stubber(account.client(service))
    stub.activate()
    return account, stub


def test_a_job_that_was_started_is_found(aws: AwsTrainingJobControl) -> None:
    start(aws)
    found = aws.training_job(JOB.name)
    assert found is not None
    assert (found.instances, found.instance_type) == (2, "ml.trn1.32xlarge")
    assert found.checkpoint_url == JOB.checkpoint_url
    assert found.is_completed  # moto's jobs are


def test_a_job_that_is_not_there_is_none(aws: AwsTrainingJobControl) -> None:
    assert aws.training_job("trn-pilot--other") is None


def test_aws_says_in_other_words_that_a_job_is_not_there() -> None:
    aws, stub = stubbed("sagemaker")
    stub.add_client_error("describe_training_job", "ValidationException", "Requested resource not found.")
    assert aws.training_job(JOB.name) is None


def test_a_failed_job_reports_why() -> None:
    aws, stub = stubbed("sagemaker")
    answer = {
        "TrainingJobName": JOB.name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:123456789012:training-job/{JOB.name}",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://bucket/model.tar.gz"},
        "TrainingJobStatus": "Failed",
        "SecondaryStatus": "Failed",
        "FailureReason": "AlgorithmError: RuntimeError: no data",
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2},
        "StoppingCondition": {"MaxRuntimeInSeconds": 1},
        "CreationTime": NOON,
        "BillableTimeInSeconds": 90,
        "WarmPoolStatus": {"Status": "Available"},
        "SecondaryStatusTransitions": [
            {"Status": "Starting", "StartTime": NOON, "StatusMessage": "Starting"},
            {"Status": "Failed", "StartTime": NOON, "StatusMessage": "Training job failed"},
        ],
    }
    stub.add_response("describe_training_job", answer, {"TrainingJobName": JOB.name})
    found = aws.training_job(JOB.name)
    assert found is not None
    assert (found.is_over, found.is_completed) == (True, False)
    assert (found.reason, found.message) == ("AlgorithmError: RuntimeError: no data", "Training job failed")
    assert (found.billable_seconds, found.warm_pool) == (90, "Available")
    assert [(stage.name, stage.started) for stage in found.stages] == [("Starting", NOON), ("Failed", NOON)]
    assert (found.on_spot, found.is_paid_for) == (False, False)


def test_jobs_are_listed_by_name_and_the_newest_first() -> None:
    aws, stub = stubbed("sagemaker")
    entry = {"TrainingJobArn": "arn:aws:sagemaker:us-west-2:123456789012:training-job/x", "TrainingJobStatus": "Failed"}
    names = ["trn-pilot--0", "not-trn-pilot--1", "trn-pilot--1", "trn-pilot--2"]
    entries = [{**entry, "TrainingJobName": name, "CreationTime": NOON} for name in names]
    parameters = {
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "NameContains": "trn-pilot--",
        "StatusEquals": "Failed",
        "MaxResults": 2,
    }
    stub.add_response("list_training_jobs", {"TrainingJobSummaries": entries[:1], "NextToken": "more"}, parameters)
    rest = {"TrainingJobSummaries": entries[1:]}
    stub.add_response("list_training_jobs", rest, parameters | {"NextToken": "more"})
    found = aws.training_jobs(prefix="trn-pilot--", status="Failed", most=2)
    assert [job.name for job in found] == ["trn-pilot--0", "trn-pilot--1"]


def test_jobs_of_moto_are_listed(aws: AwsTrainingJobControl) -> None:
    start(aws)
    start(aws, "trn-pilot--second")
    assert {job.name for job in aws.training_jobs(most=5)} == {JOB.name, "trn-pilot--second"}
    assert [job.name for job in aws.training_jobs(prefix="trn-pilot--s", most=5)] == ["trn-pilot--second"]


def test_times_are_in_utc_as_those_in_the_names_of_jobs() -> None:
    aws, stub = stubbed("sagemaker")
    created = NOON.astimezone(timezone(timedelta(hours=9)))
    entry = {"TrainingJobName": "a", "TrainingJobArn": "arn:aws:sagemaker:us-west-2:123456789012:training-job/a"}
    stub.add_response(
        "list_training_jobs",
        {"TrainingJobSummaries": [{**entry, "TrainingJobStatus": "Failed", "CreationTime": created}]},
    )
    (found,) = aws.training_jobs(most=1)
    assert (found.created, found.created.tzinfo) == (NOON, UTC)


def write(stream: str, *texts: str, second: int = 0) -> None:
    logs = client("logs")
    if not logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]:
        logs.create_log_group(logGroupName=GROUP)
    if not logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=stream)["logStreams"]:
        logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
    at = int(datetime.now(UTC).timestamp() // 60 * 60_000) + second * 1000
    events = [{"timestamp": at + n, "message": text} for n, text in enumerate(texts)]
    logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)


def texts(lines: "list[LogLine]") -> list[tuple[str, str]]:
    return [(line.node, line.text) for line in lines]


def test_lines_of_all_nodes_come_by_their_time(aws: AwsTrainingJobControl) -> None:
    write(f"{JOB.name}/algo-2-1700000000", "second", second=2)
    write(f"{JOB.name}/algo-1-1700000000", "first", second=1)
    write(f"{JOB.name}-other/algo-1-1700000000", "of another job")
    assert texts([*aws.job_log(JOB.name, {}).lines]) == [("algo-1", "first"), ("algo-2", "second")]


def test_the_next_poll_finds_only_what_is_new(aws: AwsTrainingJobControl) -> None:
    stream = f"{JOB.name}/algo-1-1700000000"
    write(stream, "a", "b")
    first = aws.job_log(JOB.name, {})
    assert aws.job_log(JOB.name, first.position).lines == []
    write(stream, "c", second=3)
    write(f"{JOB.name}/algo-1-1700000999", "after an interruption", second=4)
    found = aws.job_log(JOB.name, first.position).lines
    assert texts([*found]) == [("algo-1", "c"), ("algo-1", "after an interruption")]


def test_a_job_that_has_written_nothing_has_no_lines(aws: AwsTrainingJobControl) -> None:
    assert aws.job_log(JOB.name, {}).lines == []


def test_a_log_that_may_not_be_read_names_the_permission() -> None:
    aws, stub = stubbed("logs")
    stub.add_client_error("describe_log_streams", "AccessDeniedException")
    with pytest.raises(UnavailableError, match="logs:DescribeLogStreams is missing"):
        aws.job_log(JOB.name, {})


def stream_of(job_log_client: Stubber, events: "list[str] | None") -> None:
    if events is None:
        job_log_client.add_client_error("get_log_events", "ThrottlingException", "Rate exceeded")
        return
    output = [{"timestamp": 0, "message": text} for text in events]
    job_log_client.add_response("get_log_events", {"events": output, "nextForwardToken": "end"})
    job_log_client.add_response("get_log_events", {"events": [], "nextForwardToken": "end"})


def two_streams() -> tuple[AwsTrainingJobControl, Stubber]:
    aws, stub = stubbed("logs")
    names = [{"logStreamName": f"{JOB.name}/algo-{n}-1700000000"} for n in (1, 2)]
    stub.add_response("describe_log_streams", {"logStreams": names})
    return aws, stub


def test_a_throttled_poll_keeps_what_it_has_read_and_is_not_the_last() -> None:
    aws, stub = two_streams()
    stream_of(stub, None)
    stream_of(stub, ["b"])
    page = aws.job_log(JOB.name, {})
    assert texts([*page.lines]) == [("algo-2", "b")]
    assert not page.is_last
    assert list(page.position) == [f"{JOB.name}/algo-2-1700000000"]


def test_a_poll_that_reads_nothing_for_throttling_is_no_answer() -> None:
    aws, stub = two_streams()
    stream_of(stub, [])
    stream_of(stub, None)
    with pytest.raises(UnavailableError, match="Rate exceeded"):
        aws.job_log(JOB.name, {})


def test_a_poll_that_is_cut_short_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_training_jobs, "_PAGES_AT_ONCE", 1)
    aws, stub = two_streams()
    for _ in range(2):
        stub.add_response("get_log_events", {"events": [], "nextForwardToken": "more"})
    assert not aws.job_log(JOB.name, {}).is_last


def test_equal_source_is_uploaded_once(aws: AwsTrainingJobControl) -> None:
    s3 = client("s3")
    s3.create_bucket(Bucket="trn-bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
    url, files = "s3://trn-bucket/source/abc/", {"source.tar.gz": b"x", "container_entry.py": b"yy"}
    assert aws.upload(url, files) == 2
    assert s3.get_object(Bucket="trn-bucket", Key="source/abc/container_entry.py")["Body"].read() == b"yy"
    assert aws.upload(url, files) == 0


def test_a_bucket_that_is_not_there_takes_no_upload(aws: AwsTrainingJobControl) -> None:
    with pytest.raises(RequestRefusedError, match="NoSuchBucket"):
        aws.upload("s3://no-such-bucket/x", {"a": b""})


def test_what_may_not_be_read_is_uploaded() -> None:
    aws, stub = stubbed("s3")
    stub.add_client_error("head_object", "403", http_status_code=403)
    stub.add_response("put_object", {}, {"Bucket": "trn-bucket", "Key": "source/a", "Body": b"x"})
    assert aws.upload("s3://trn-bucket/source", {"a": b"x"}) == 1


def test_the_request_to_stop_names_the_job() -> None:
    aws, stub = stubbed("sagemaker")
    stub.add_response("stop_training_job", {}, {"TrainingJobName": JOB.name})
    aws.stop(JOB.name)
    stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDeniedException", "the permission sagemaker:CreateTrainingJob is missing"),
        ("ResourceLimitExceeded", "AWS answered ResourceLimitExceeded: too many"),
    ],
)
def test_a_refusal_to_start_says_why(code: str, says: str) -> None:
    aws, stub = stubbed("sagemaker")
    stub.add_client_error("create_training_job", code, "too many")
    with pytest.raises(RequestRefusedError, match=says):
        start(aws)


@pytest.mark.parametrize(("code", "status"), [("InternalFailure", 500), ("ResourceInUse", 400)])
def test_what_may_have_been_started_is_not_reported_as_refused(code: str, status: int) -> None:
    aws, stub = stubbed("sagemaker")
    stub.add_client_error("create_training_job", code, http_status_code=status)
    with pytest.raises(JobUnknownError, match=code):
        start(aws)


@pytest.mark.usefixtures("_behind_a_proxy")
def test_a_page_in_place_of_an_answer_does_not_say_that_nothing_was_started() -> None:
    with pytest.raises(JobUnknownError):
        start(AwsTrainingJobControl(REGION))


def test_an_endpoint_that_does_not_answer_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(RequestRefusedError, match=r"127\.0\.0\.1:9"):
        start(AwsTrainingJobControl(REGION))


class _Page(BaseHTTPRequestHandler):
    """A page of some proxy, whatever is asked."""

    def do_POST(self) -> None:
        self.send_response(500)
        self.end_headers()
        self.wfile.write(b"<!doctype html>\n<h1>Internal Server Error</h1>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def _behind_a_proxy(monkeypatch: pytest.MonkeyPatch, credentials_of_nobody: None) -> Iterator[None]:  # noqa: ARG001
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


@pytest.mark.usefixtures("_behind_a_proxy")
def test_a_page_in_place_of_an_answer_is_no_answer() -> None:
    with pytest.raises(UnavailableError, match="iam:GetRole is not AWS's"):
        AwsSageMakerAccount(REGION).role("training")


def trust(*services: str) -> dict[str, Any]:
    principal = {"Service": services[0] if len(services) == 1 else [*services]}
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


@pytest.mark.parametrize(
    "services", [("sagemaker.amazonaws.com",), ("ec2.amazonaws.com", "sagemaker.amazonaws.com"), ("ec2.amazonaws.com",)]
)
def test_a_role_is_found_with_those_it_trusts(services: tuple[str, ...]) -> None:
    with mock_aws():
        client("iam").create_role(RoleName="training", AssumeRolePolicyDocument=json.dumps(trust(*services)))
        role = AwsSageMakerAccount(REGION).role("training")
        assert role is not None
        assert role.trusted_services == frozenset(services)
        assert AwsSageMakerAccount(REGION).role("other") is None


def test_what_a_role_may_not_do_is_what_the_simulation_does_not_allow() -> None:
    account, stub = account_stub("iam")
    decisions = {"s3:GetObject": "allowed", "s3:PutObject": "implicitDeny"}
    results = [{"EvalActionName": name, "EvalDecision": decision} for name, decision in decisions.items()]
    resources = ["arn:aws:s3:::b/x/*"]
    parameters = {"PolicySourceArn": JOB.role_arn, "ActionNames": [*decisions], "ResourceArns": resources}
    stub.add_response("simulate_principal_policy", {"EvaluationResults": results}, {**parameters, "ContextEntries": []})
    denials = account.denials(JOB.role_arn, Calls(actions=[*decisions], resources=resources))
    assert [denial.action for denial in denials] == ["s3:PutObject"]


def test_an_image_is_there_when_a_pull_would_find_it() -> None:
    account, stub = account_stub("ecr")
    parameters = {"registryId": "123456789012", "repositoryName": "mine", "imageIds": [{"imageTag": "1"}]}
    place: dict[str, Any] = {"account": "123456789012", "region": REGION, "repository": "mine"}
    stub.add_response("batch_get_image", {"images": [{"imageId": {"imageTag": "1"}}], "failures": []}, parameters)
    stub.add_response("batch_get_image", {"images": [], "failures": [{"failureCode": "ImageNotFound"}]}, parameters)
    stub.add_client_error("batch_get_image", "RepositoryNotFoundException")
    found = [account.has_image(**place, reference={"imageTag": "1"}) for _ in range(3)]
    assert found == [True, False, False]


def test_an_image_of_another_account_that_hides_it_is_no_answer() -> None:
    account, stub = account_stub("ecr")
    stub.add_client_error("batch_get_image", "AccessDeniedException")
    with pytest.raises(UnavailableError, match="ecr:BatchGetImage is missing"):
        account.has_image(account="1" * 12, region=REGION, repository="mine", reference={"imageTag": "1"})


def test_a_bucket_reports_its_region_or_is_not_there() -> None:
    with mock_aws():
        client("s3").create_bucket(Bucket="trn-bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
        account = AwsSageMakerAccount(REGION)
        assert (account.bucket_region("trn-bucket"), account.bucket_region("trn-bucket-2")) == (REGION, None)


def test_the_outputs_of_a_stack_are_reported_by_name() -> None:
    template = {"Resources": {"T": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"RoleArn": {"Value": "arn"}}}
    with mock_aws():
        client("cloudformation").create_stack(StackName="S", TemplateBody=json.dumps(template))
        stack = AwsSageMakerAccount(REGION).deployed_stack("S")
        assert stack is not None
        assert stack.outputs == {"RoleArn": "arn"}


def test_only_the_control_can_start_a_job_or_stop_one() -> None:
    assert not hasattr(AwsTrainingJobs, "start")
    assert not hasattr(AwsSageMakerAccount, "start")
