"""Custom::TrnFleetGate against moto's Auto Scaling, EC2 and S3."""

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tests.runtime.handlers.conftest import CloudFormation, Run
from tests.runtime.handlers.fleet import (
    NOON,
    Clock,
    Fleet,
    Lambda,
)
from trainium_runtime.handlers import fleet_readiness

OVER_QUOTA = "You have requested more vCPU capacity than your current vCPU limit of 0 allows. Launching failed."


def test_gate_succeeds_with_every_node_proven(gate: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    fleet.prove(*fleet.instances)
    gate()
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["Data"] == {"Summary": "2 of 2 nodes proven"}


def test_gate_waits_for_a_record_written_later(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    clock.when_asleep = lambda: fleet.prove(second) if clock.now > NOON.timestamp() + 300 else None
    gate()
    assert cloudformation.response["Status"] == "SUCCESS"
    assert 300 < clock.now - NOON.timestamp() < 330


def test_failed_node_fails_the_deployment_with_its_reason(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    fleet.fail(second, "neuron-ls shows 15 of 16 Neuron devices (missing: device 7)")
    gate()
    assert cloudformation.response["Status"] == "FAILED"
    assert (
        cloudformation.response["Reason"]
        == f"node {second}: neuron-ls shows 15 of 16 Neuron devices (missing: device 7)"
    )
    assert clock.now == NOON.timestamp()


def test_gate_waits_for_the_replacement_of_a_failed_node(
    gate: Run, fleet: Fleet, functions: Lambda, cloudformation: CloudFormation, capsys: pytest.CaptureFixture[str]
) -> None:
    _, second = fleet.instances
    fleet.fail(second, "no driver")

    def replace_and_prove() -> None:
        if second in fleet.instances:
            fleet.replace(second)
        fleet.prove(*fleet.instances)

    functions.when_reconciler_is_called = replace_and_prove
    gate(Replacements="1")
    assert cloudformation.response["Status"] == "SUCCESS"
    assert f"node {second}: no driver; being replaced (1 of 1)" in capsys.readouterr().out


def test_gate_waits_for_nodes_to_reach_each_other(
    gate: Run, fleet: Fleet, functions: Lambda, cloudformation: CloudFormation
) -> None:
    fleet.prove(*fleet.instances, connected=False)
    functions.when_reconciler_is_called = lambda: fleet.prove(*fleet.instances)
    gate()
    assert cloudformation.response["Status"] == "SUCCESS"
    assert functions.reconciler_calls == 1


def test_console_error_of_silent_node_fails_immediately(
    gate: Run, fleet: Fleet, clock: Clock, consoles: dict[str, str], cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    consoles[second] = "cloud-init ...\r\n[   42.0] trn-node FAILED: S3 refused the record: AccessDenied\r\nlogin: "
    gate()
    assert cloudformation.response["Reason"] == (
        f"node {second}: S3 refused the record: AccessDenied (read from its console: it could not report)"
    )
    assert clock.now == NOON.timestamp()


@pytest.mark.parametrize("error", ["denied", "offline"])
def test_unreadable_console_does_not_fail_the_deployment(
    gate: Run, fleet: Fleet, clock: Clock, consoles: dict[str, str], cloudformation: CloudFormation, error: str
) -> None:
    consoles.update(dict.fromkeys(fleet.instances, error))
    clock.when_asleep = lambda: fleet.prove(*fleet.instances)
    gate()
    assert cloudformation.response["Status"] == "SUCCESS"


def test_permanent_launch_failure_fails_immediately(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.add_launch("Failed", OVER_QUOTA)
    gate(Nodes="3")
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"] == f"an instance could not be launched: {OVER_QUOTA}"
    assert clock.now == NOON.timestamp()


def test_failures_before_a_launch_that_did_not_fail_are_ignored(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    """For example in a rollback, after a template from which no instance could be launched."""
    fleet.add_launch("Failed", OVER_QUOTA)
    fleet.add_launch("InProgress")
    gate(request_type="Update", Nodes="3", TimeoutMinutes="1")
    assert "no record yet from" in cloudformation.response["Reason"]
    assert OVER_QUOTA not in cloudformation.response["Reason"]


def test_cancelled_launch_with_a_reason_counts_as_failed() -> None:
    """For example, an instance is terminated before it is in service, because its KMS key cannot be used."""
    cancelled = {"Description": "Launching", "StatusCode": "Cancelled", "StartTime": NOON}
    assert fleet_readiness.failed_launches([{**cancelled, "StatusMessage": "the key"}, cancelled], None) == ["the key"]


def test_quota_error_is_permanent_ten_minutes_after_last_node_ended(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.add_launch("Failed", OVER_QUOTA)
    fleet.add_termination()
    gate(Nodes="3")
    assert OVER_QUOTA in cloudformation.response["Reason"]
    assert 600 <= clock.now - NOON.timestamp() < 660


def test_update_ignores_failed_launches_of_earlier_deployments(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.add_launch("Failed", OVER_QUOTA, at=NOON - timedelta(hours=1))
    gate(request_type="Update", Nodes="3", TimeoutMinutes="1")
    assert OVER_QUOTA not in cloudformation.response["Reason"]


def test_update_does_not_name_nodes_replaced_before_it(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    fleet.fail("i-0aaaaaaaaaaaaaaaa", "replaced long ago")
    fleet.fail(second, "no driver")
    clock.now = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
    gate(request_type="Update")
    assert cloudformation.response["Reason"] == f"node {second}: no driver"


def test_ending_invocation_requests_another_without_response(
    gate: Run, clock: Clock, functions: Lambda, cloudformation: CloudFormation
) -> None:
    event = gate()
    assert cloudformation.bodies == []
    assert functions.events == [event]
    assert 60 <= NOON.timestamp() + 15 * 60 - clock.now < 90  # Enough of its 15 minutes is left to answer.


def test_invocations_share_one_timeout_that_names_silent_nodes(
    gate: Run, fleet: Fleet, clock: Clock, functions: Lambda, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    gate(TimeoutMinutes="20")
    gate(functions.events[0])
    assert len(functions.events) == 1
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"] == (
        f"after 20 minutes: 1 of 2 nodes proven, 2 launched; no record yet from {second}"
    )
    assert 19.5 < (clock.now - NOON.timestamp()) / 60 <= 20


@pytest.mark.parametrize("broken", ["RecordsBucket", "TimeoutMinutes"])
def test_exception_sends_a_response_to_cloudformation(gate: Run, cloudformation: CloudFormation, broken: str) -> None:
    gate(**{broken: "nonsense"})
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"].startswith("the fleet could not be watched: ")
    assert "nonsense" in cloudformation.response["Reason"] or "NoSuchBucket" in cloudformation.response["Reason"]


def test_refused_next_invocation_sends_a_response(gate: Run, functions: Lambda, cloudformation: CloudFormation) -> None:
    message = "not authorized to perform lambda:InvokeFunction"
    functions.refusal = ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, "Invoke")
    gate()
    assert "lambda:InvokeFunction" in cloudformation.response["Reason"]


def test_connection_error_is_retried(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.prove(*fleet.instances)
    describe_group = fleet_readiness.describe_group
    errors = iter([EndpointConnectionError(endpoint_url="https://example.com")])

    def fail_once(*arguments: Any) -> Any:
        if error := next(errors, None):
            raise error
        return describe_group(*arguments)

    monkeypatch.setattr(fleet_readiness, "describe_group", fail_once)
    gate()
    assert cloudformation.response["Status"] == "SUCCESS"


def test_delete_sends_a_response_despite_aws_errors(
    gate: Run, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(service: str) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, service)

    monkeypatch.setattr(boto3, "client", refuse)
    gate(request_type="Delete")
    assert (cloudformation.response["Status"], cloudformation.response["PhysicalResourceId"]) == (
        "SUCCESS",
        "fleet/gate",
    )
