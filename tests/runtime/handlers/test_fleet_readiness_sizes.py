"""Custom::TrnFleetGate sets the size of the group at a deployment, in a rollback, and at deletion."""

from typing import Any

import pytest

from tests.runtime.handlers.conftest import CloudFormation, Run
from tests.runtime.handlers.fleet import GROUP, NOON, Clock, Fleet, Lambda, client
from trainium_runtime.handlers import fleet_readiness


@pytest.mark.parametrize("nodes", [1, 4])
def test_group_gets_the_size_of_the_deployment(
    gate: Run, fleet: Fleet, functions: Lambda, cloudformation: CloudFormation, nodes: int
) -> None:
    fleet.room = nodes
    functions.when_reconciler_is_called = lambda: fleet.prove(*fleet.instances)
    gate(request_type="Update", Nodes=str(nodes))
    assert cloudformation.response["Data"] == {"Summary": f"{nodes} of {nodes} nodes proven"}
    assert fleet.sizes == [nodes]


def test_manual_stop_of_nodes_ends_the_waiting_deployment(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    def stop() -> None:
        client("autoscaling").set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=0)

    clock.when_asleep = stop
    gate()
    sent = "the desired size of the group became 0 while the deployment waited for 2 nodes"
    assert (cloudformation.response["Status"], cloudformation.response["Data"]) == ("SUCCESS", {"Summary": sent})
    assert fleet.sizes == []


def test_rollback_does_not_wait_and_reports_the_nodes(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.prove(first)
    fleet.fail(second, "no driver")
    cloudformation.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    gate(request_type="Update")
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["Data"] == {"Summary": f"after a rollback: node {second}: no driver"}
    assert clock.now == NOON.timestamp()


def test_rollback_restores_the_size_of_the_group(gate: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    cloudformation.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    gate(request_type="Update", Nodes="1")
    assert len(fleet.instances) == 1


@pytest.mark.parametrize("broken", ["RecordsBucket", "GroupName"])
def test_error_does_not_fail_a_rollback(gate: Run, cloudformation: CloudFormation, broken: str) -> None:
    cloudformation.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    gate(request_type="Update", **{broken: "nonsense"})
    assert cloudformation.response["Status"] == "SUCCESS"


def test_deletion_terminates_every_node_first(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = [{i: {"State": {"Name": state}} for i in fleet.instances} for state in ("shutting-down", "terminated")]
    monkeypatch.setattr(fleet_readiness, "describe_instances", lambda *_: going.pop(0))
    gate(request_type="Delete")
    assert fleet.sizes == [0]
    assert clock.now > NOON.timestamp()
    assert cloudformation.response["Status"] == "SUCCESS"


def test_unterminated_node_delays_deletion_until_the_deadline(
    gate: Run, clock: Clock, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = {"i-1": {"State": {"Name": "shutting-down"}}}
    monkeypatch.setattr(fleet_readiness, "describe_instances", lambda *_: stuck)
    again: list[dict[str, Any]] = []
    monkeypatch.setattr(fleet_readiness, "_call_again", lambda event, _context: again.append(event))
    gate(request_type="Delete", TimeoutMinutes="30")
    for event in again:
        gate(event)
    assert len(again) == 2
    assert 29 * 60 < clock.now - NOON.timestamp() <= 30 * 60
    assert cloudformation.response["Status"] == "SUCCESS"
