"""Calls about a stack's events and logs: against moto, with a stub for CloudFormation."""

from collections.abc import Iterator
from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.aws_stubs import REGION
from trainium_core.naming import GROUP_OUTPUT, RECORDS_OUTPUT
from trainium_core.support.aws_support import AwsSupport

pytestmark = pytest.mark.usefixtures("made_up_credentials")

STACK, BUCKET = "TrnClusterStack", "the-records"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
STACK_ID = f"arn:aws:cloudformation:{REGION}:123456789012:stack/{STACK}/1"
ABSENT = f"Stack with id {STACK} does not exist"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsSupport]:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield AwsSupport(REGION)


@pytest.fixture
def stack(account: AwsSupport) -> Iterator[Stubber]:
    with Stubber(account.client("cloudformation")) as stub:
        yield stub


def is_there(stub: Stubber) -> None:
    values = {RECORDS_OUTPUT: BUCKET, GROUP_OUTPUT: "nodes"}
    outputs = [{"OutputKey": key, "OutputValue": value} for key, value in values.items()]
    found = {"StackName": STACK, "StackId": STACK_ID, "CreationTime": NOON, "StackStatus": "CREATE_COMPLETE"}
    stub.add_response("describe_stacks", {"Stacks": [{**found, "Outputs": outputs}]}, {"StackName": STACK})


def has_event(stub: Stubber, name: str) -> None:
    event = {"StackId": STACK_ID, "EventId": "1", "StackName": STACK, "Timestamp": NOON}
    event |= {"LogicalResourceId": "Gate", "ResourceStatusReason": "15 of 16 Neuron devices"}
    stub.add_response("describe_stack_events", {"StackEvents": [event]}, {"StackName": name})


def test_events_of_deleted_stack_are_of_its_last_deployment(account: AwsSupport, stack: Stubber) -> None:
    stack.add_client_error("describe_stacks", "ValidationError", ABSENT)
    gone = {"StackName": STACK, "StackId": STACK_ID, "CreationTime": NOON, "StackStatus": "DELETE_COMPLETE"}
    stack.add_response("list_stacks", {"StackSummaries": [gone]}, {"StackStatusFilter": ["DELETE_COMPLETE"]})
    has_event(stack, STACK_ID)
    assert len(account.stack_history(STACK)) == 1


def test_log_groups_of_stack_are_read_and_missing_ones_named(account: AwsSupport, stack: Stubber) -> None:
    logs = boto3.client("logs", REGION)
    logs.create_log_group(logGroupName="/aws/lambda/gate")
    logs.create_log_stream(logGroupName="/aws/lambda/gate", logStreamName="one")
    event = {"timestamp": int(NOON.timestamp() * 1000), "message": "waiting: 1 of 2 nodes proven\n"}
    logs.put_log_events(logGroupName="/aws/lambda/gate", logStreamName="one", logEvents=[event])
    made = [
        {
            "LogicalResourceId": name,
            "PhysicalResourceId": f"/aws/lambda/{name}",
            "ResourceType": "AWS::Logs::LogGroup",
            "LastUpdatedTimestamp": NOON,
            "ResourceStatus": "CREATE_COMPLETE",
        }
        for name in ("gate", "gone")
    ]
    stack.add_response("list_stack_resources", {"StackResourceSummaries": made}, {"StackName": STACK})
    shown = account.functions_logs(STACK)
    assert shown["aws.lambda.gate.log"].endswith(" waiting: 1 of 2 nodes proven")
    assert shown["aws.lambda.gone.log"].startswith("not available: AWS answered ResourceNotFoundException")


def test_end_of_each_node_log_is_read(account: AwsSupport, stack: Stubber) -> None:
    is_there(stack)
    s3 = boto3.client("s3", REGION)
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket=BUCKET, Key="logs/i-1.log", Body=b"x" * 200_000 + b"the end")
    s3.put_object(Bucket=BUCKET, Key="nodes/i-1.json", Body=b"{}")
    (log,) = account.node_logs(STACK).values()
    assert len(log) == 100_000
    assert log.endswith("the end")


def test_missing_instance_has_no_console(account: AwsSupport) -> None:
    shown = account.consoles(["i-0123456789abcdef0"])
    assert shown["i-0123456789abcdef0.txt"].startswith("not available: AWS answered InvalidInstanceID.NotFound")
