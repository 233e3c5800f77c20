"""Custom::TrnFleetGate against moto's Auto Scaling and S3; Lambda is a stub that botocore's own model checks."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from tests.handlers.conftest import REGION, CloudFormation, Partly
from tests.handlers.fleet import BUCKET, GROUP, NOON, PREFIX, Clock, Context, Fleet, Invocations, client
from trainium_cdk.handlers import fleet_gate

OVER_QUOTA = "You have requested more vCPU capacity than your current vCPU limit of 0 allows. Launching failed."
NO_CAPACITY = "We currently do not have sufficient trn1.32xlarge capacity (InsufficientInstanceCapacity)."

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(nodes=2, region=REGION)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fleet_gate, "time", clock)
    return clock


@pytest.fixture
def invocations() -> Invocations:
    return Invocations()


@pytest.fixture
def lambda_stub() -> Stubber:
    return Stubber(client("lambda"))


@pytest.fixture
def gate(
    fleet: Fleet, clock: Clock, lambda_stub: Stubber, monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation
) -> Run:
    """Run the handler; the event is a Create for both nodes unless told otherwise. Returns the event."""

    def stubbed(service: str) -> Any:
        if service == "lambda":
            return lambda_stub.client
        if service == "autoscaling":
            return Partly(client(service), describe_scaling_activities={"Activities": fleet.activities})
        return client(service)

    monkeypatch.setattr(boto3, "client", stubbed)

    def run(event: dict[str, Any] | None = None, request_type: str = "Create", **properties: str) -> dict[str, Any]:
        defaults = {
            "GroupName": GROUP,
            "Nodes": "2",
            "LaunchTemplateVersion": "1",
            "RecordsBucket": BUCKET,
            "RecordsPrefix": PREFIX,
            "TimeoutMinutes": "30",
        }
        physical_id = None if request_type == "Create" else f"{GROUP}/gate"
        event = event or cloudformation.event(request_type, defaults | properties, physical_id)
        fleet_gate.handle(event, Context(clock))
        return event

    return run


def test_the_gate_opens_with_every_node_proven(gate: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    fleet.prove(*fleet.instances)
    gate()
    assert cloudformation.answer["Status"] == "SUCCESS"
    assert cloudformation.answer["Data"] == {"Summary": "2 of 2 nodes proven"}


def test_a_record_written_later_is_waited_for(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    clock.when_asleep = lambda: fleet.prove(second) if clock.now > NOON.timestamp() + 300 else None
    gate()
    assert cloudformation.answer["Status"] == "SUCCESS"
    assert 300 < clock.now - NOON.timestamp() < 330


def test_a_node_that_fails_fails_the_deployment_with_its_own_sentence(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    fleet.disprove(second, "neuron-ls shows 15 of 16 Neuron devices (missing 7)")
    gate()
    assert cloudformation.answer["Status"] == "FAILED"
    assert cloudformation.answer["Reason"] == f"node {second}: neuron-ls shows 15 of 16 Neuron devices (missing 7)"
    assert clock.now == NOON.timestamp()


def test_a_lasting_launch_failure_fails_the_deployment_at_once(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.tell_launch("Failed", OVER_QUOTA)
    gate(Nodes="3")
    assert cloudformation.answer["Status"] == "FAILED"
    assert cloudformation.answer["Reason"] == f"an instance could not be launched: {OVER_QUOTA}"
    assert clock.now == NOON.timestamp()


def test_a_lack_of_capacity_is_waited_out(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.tell_launch("Failed", NO_CAPACITY)
    clock.when_asleep = lambda: fleet.prove(*fleet.instances)
    gate()
    assert cloudformation.answer["Status"] == "SUCCESS"


def test_a_complete_fleet_passes_whatever_failed_before(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    """Such as after the rollback of an update that asked for more nodes than the quota allows."""
    fleet.tell_launch("Failed", OVER_QUOTA)
    clock.when_asleep = lambda: fleet.prove(*fleet.instances)
    gate(request_type="Update")
    assert cloudformation.answer["Status"] == "SUCCESS"


def test_launches_that_failed_before_one_went_well_say_nothing(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    """Such as while a rollback replaces nodes whose template could not be launched."""
    fleet.tell_launch("Failed", OVER_QUOTA)
    fleet.tell_launch("InProgress")
    gate(request_type="Update", Nodes="3", TimeoutMinutes="1")
    assert "no word from" in cloudformation.answer["Reason"]
    assert OVER_QUOTA not in cloudformation.answer["Reason"]


def test_a_termination_does_not_hide_a_failed_launch(gate: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    fleet.tell_launch("Failed", OVER_QUOTA)
    fleet.tell_termination()
    gate(Nodes="3")
    assert OVER_QUOTA in cloudformation.answer["Reason"]


def test_an_update_ignores_failed_launches_of_an_earlier_deployment(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.tell_launch("Failed", OVER_QUOTA, at=NOON - timedelta(hours=1))
    gate(request_type="Update", Nodes="3", TimeoutMinutes="1")
    assert OVER_QUOTA not in cloudformation.answer["Reason"]


def test_an_update_counts_failed_launches_since_the_group_was_updated(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.tell_launch("Failed", OVER_QUOTA, at=NOON - timedelta(minutes=2))
    gate(request_type="Update", Nodes="3")
    assert OVER_QUOTA in cloudformation.answer["Reason"]


def test_a_creation_counts_every_failed_launch_however_long_the_group_took(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.tell_launch("Failed", OVER_QUOTA, at=NOON - timedelta(hours=1))
    gate(Nodes="3")
    assert OVER_QUOTA in cloudformation.answer["Reason"]


def test_records_of_instances_that_left_the_group_do_not_count(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.disprove("i-0aaaaaaaaaaaaaaaa", "gone since")
    fleet.prove(*fleet.instances)
    gate()
    assert cloudformation.answer["Status"] == "SUCCESS"


def test_before_an_invocation_ends_it_asks_for_another_and_says_nothing(
    gate: Run, clock: Clock, lambda_stub: Stubber, invocations: Invocations, cloudformation: CloudFormation
) -> None:
    lambda_stub.add_response("invoke", {"StatusCode": 202}, invocations.expected())
    with lambda_stub:
        event = gate()
    assert cloudformation.bodies == []
    assert invocations.events == [event]
    assert 60 <= NOON.timestamp() + 15 * 60 - clock.now < 90  # enough of its 15 minutes is left to answer


def test_invocations_share_one_time_out_that_says_who_is_silent(
    gate: Run,
    fleet: Fleet,
    clock: Clock,
    lambda_stub: Stubber,
    invocations: Invocations,
    cloudformation: CloudFormation,
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    for _ in range(2):
        lambda_stub.add_response("invoke", {"StatusCode": 202}, invocations.expected())
    with lambda_stub:
        gate()
        gate(invocations.events[0])
        gate(invocations.events[1])
        lambda_stub.assert_no_pending_responses()
    assert cloudformation.answer["Status"] == "FAILED"
    assert cloudformation.answer["Reason"] == (
        f"after 30 minutes: 1 of 2 nodes proven, 2 launched; no word from {second}"
    )
    assert 29.5 < (clock.now - NOON.timestamp()) / 60 <= 30


def test_a_group_that_is_gone_fails_the_gate(gate: Run, cloudformation: CloudFormation) -> None:
    gate(GroupName="nobody")
    assert cloudformation.answer["Status"] == "FAILED"


@pytest.mark.parametrize("broken", ["RecordsBucket", "TimeoutMinutes", "Nodes"])
def test_no_exception_leaves_cloudformation_without_an_answer(
    gate: Run, cloudformation: CloudFormation, broken: str
) -> None:
    gate(**{broken: "nonsense"})
    assert cloudformation.answer["Status"] == "FAILED"
    assert cloudformation.answer["Reason"].startswith("the fleet could not be watched: ")
    assert "nonsense" in cloudformation.answer["Reason"] or "NoSuchBucket" in cloudformation.answer["Reason"]


def test_an_unreadable_record_fails_the_deployment(gate: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    fleet.write(fleet.instances[0], "<html>")
    gate()
    assert cloudformation.answer["Status"] == "FAILED"
    assert "not a node record" in cloudformation.answer["Reason"]


def test_a_refused_second_invocation_is_answered(
    gate: Run, lambda_stub: Stubber, cloudformation: CloudFormation
) -> None:
    lambda_stub.add_client_error("invoke", "AccessDeniedException", "not authorized to perform lambda:InvokeFunction")
    with lambda_stub:
        gate()
    assert "lambda:InvokeFunction" in cloudformation.answer["Reason"]


def test_delete_is_answered_without_a_look(
    gate: Run, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(service: str) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, service)

    monkeypatch.setattr(boto3, "client", refuse)
    gate(request_type="Delete")
    assert (cloudformation.answer["Status"], cloudformation.answer["PhysicalResourceId"]) == ("SUCCESS", "fleet/gate")


def test_the_physical_id_stays_the_same_while_the_group_does(
    gate: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.prove(*fleet.instances)
    gate()
    gate(request_type="Update", LaunchTemplateVersion="2")
    assert {answer["PhysicalResourceId"] for answer in cloudformation.answers} == {f"{GROUP}/gate"}
