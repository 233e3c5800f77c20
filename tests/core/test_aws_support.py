"""Calls about a stack's events, logs and consoles, against moto."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from moto import mock_aws

from tests.core.aws_stubs import REGION, client, create_bucket, create_stack, put_record, stack_record
from trainium_core.support.aws_support import AwsSupport

pytestmark = pytest.mark.usefixtures("made_up_credentials")

STACK, BUCKET = "TrnClusterStack", "the-records"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsSupport]:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield AwsSupport(REGION)


def test_events_of_a_deleted_stack_are_found_by_name(account: AwsSupport) -> None:
    create_stack(STACK, {})
    client("cloudformation").delete_stack(StackName=STACK)
    assert account.stack_history(STACK)
    assert account.stack_history("Other") == []


def test_log_groups_are_read_and_missing_groups_are_named(account: AwsSupport) -> None:
    names = {"Controller": "/aws/lambda/controller", "Gone": "/aws/lambda/gone"}
    groups = {key: {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": name}} for key, name in names.items()}
    create_stack(STACK, {}, **groups)
    logs = client("logs")
    logs.delete_log_group(logGroupName=names["Gone"])
    logs.create_log_stream(logGroupName=names["Controller"], logStreamName="one")
    event = {"timestamp": int(NOON.timestamp() * 1000), "message": "waiting: 1 of 2 nodes verified\n"}
    logs.put_log_events(logGroupName=names["Controller"], logStreamName="one", logEvents=[event])
    shown = account.function_logs(STACK)
    assert shown["aws.lambda.controller.log"].endswith(" waiting: 1 of 2 nodes verified")
    assert shown["aws.lambda.gone.log"].startswith("not available: AWS answered ResourceNotFoundException")


def test_end_of_each_node_log_is_read(account: AwsSupport) -> None:
    put_record(stack_record(STACK, bucket=BUCKET))
    create_bucket(BUCKET)
    s3 = client("s3")
    s3.put_object(Bucket=BUCKET, Key="logs/i-1.log", Body=b"x" * 200_000 + b"the end")
    s3.put_object(Bucket=BUCKET, Key="nodes/i-1.json", Body=b"{}")
    (log,) = account.node_logs(STACK).values()
    assert len(log) == 100_000
    assert log.endswith("the end")


def test_missing_instance_has_no_console(account: AwsSupport) -> None:
    shown = account.consoles(["i-0123456789abcdef0"])
    assert shown["i-0123456789abcdef0.txt"].startswith("not available: AWS answered InvalidInstanceID.NotFound")
