"""Custom::TrnFleetGate replaces nodes: it launches new ones only after EC2 has terminated the old ones."""

import pytest

from tests.runtime.handlers.conftest import CloudFormation, Run
from tests.runtime.handlers.fleet import NOON, Clock, Fleet, Lambda
from trainium_runtime.handlers import fleet_readiness

ROLLBACK = "UPDATE_ROLLBACK_IN_PROGRESS"


class Terminations:
    """EC2's view of the fleet's instances, which take a while to terminate after leaving their group."""

    def __init__(self, fleet: Fleet, clock: Clock, seconds: float) -> None:
        self._before, self._fleet, self._clock, self._seconds = fleet.instances, fleet, clock, seconds

    def describe(self, *_: object) -> dict[str, dict[str, object]]:
        gone = self._clock.now > NOON.timestamp() + self._seconds
        states = dict.fromkeys(self._fleet.instances, "running") | {
            i: "terminated" if gone else "shutting-down" for i in self._before if i not in self._fleet.instances
        }
        return {i: {"State": {"Name": state}, "SubnetId": self._fleet.subnet} for i, state in states.items()}


@pytest.fixture
def before(fleet: Fleet, clock: Clock, functions: Lambda, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes before an update that requires new ones. Their termination takes five minutes; new ones get proven
    records.
    """
    monkeypatch.setattr(fleet_readiness, "describe_instances", Terminations(fleet, clock, 300).describe)
    before = fleet.instances
    fleet.versions.update(dict.fromkeys(before, "1"))
    fleet.prove(*before)

    def prove_new_ones() -> None:
        if fleet.instances and not set(before) & set(fleet.instances):
            fleet.prove(*fleet.instances)

    functions.when_reconciler_is_called = prove_new_ones
    return before


def follow(gate: Run, functions: Lambda) -> None:
    """Run the invocations that the function requested, until it requests no more."""
    while functions.events:
        gate(functions.events.pop(0))


def test_old_nodes_terminate_before_new_ones_are_launched(
    gate: Run, fleet: Fleet, clock: Clock, before: list[str], cloudformation: CloudFormation
) -> None:
    fleet.version = "2"
    gate(request_type="Update", LaunchTemplateVersion="2")
    assert cloudformation.response["Data"] == {"Summary": "2 of 2 nodes proven"}
    assert fleet.sizes == [0, 2]
    assert not set(before) & set(fleet.instances)
    assert clock.now > NOON.timestamp() + 300


def test_nodes_of_wanted_version_stay(
    gate: Run, fleet: Fleet, before: list[str], cloudformation: CloudFormation
) -> None:
    gate(request_type="Update")
    assert cloudformation.response["Data"] == {"Summary": "2 of 2 nodes proven"}
    assert (fleet.sizes, fleet.instances) == ([], before)


def test_nodes_in_another_subnet_are_replaced(gate: Run, fleet: Fleet, before: list[str]) -> None:
    gate(request_type="Update", SubnetId="subnet-0123456789abcdef0", TimeoutMinutes="8")
    assert fleet.sizes[:2] == [0, 2]
    assert not set(before) & set(fleet.instances)


def test_nodes_are_replaced_once_for_any_launched_version(
    gate: Run, fleet: Fleet, before: list[str], cloudformation: CloudFormation
) -> None:
    """An app may have overridden the version, for example with $Latest."""
    fleet.version = "3"
    gate(request_type="Update", LaunchTemplateVersion="2")
    assert fleet.sizes == [0, 2]
    assert not set(before) & set(fleet.instances)
    assert cloudformation.response["Status"] == "SUCCESS"


def test_replacement_continues_in_next_invocation(
    gate: Run,
    fleet: Fleet,
    clock: Clock,
    functions: Lambda,
    before: list[str],
    cloudformation: CloudFormation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_readiness, "describe_instances", Terminations(fleet, clock, 1200).describe)
    fleet.version = "2"
    gate(request_type="Update", LaunchTemplateVersion="2", TimeoutMinutes="50")
    assert functions.events[0]["Ended"] == sorted(before)
    follow(gate, functions)
    assert cloudformation.response["Status"] == "SUCCESS"
    assert fleet.sizes == [0, 2]
    assert clock.now > NOON.timestamp() + 1200


def test_nodes_not_terminated_in_time_are_named_in_failure(
    gate: Run, fleet: Fleet, before: list[str], cloudformation: CloudFormation
) -> None:
    fleet.version = "2"
    gate(request_type="Update", LaunchTemplateVersion="2", TimeoutMinutes="4")
    assert cloudformation.response["Status"] == "FAILED"
    reason = f"nodes to be terminated before others are launched: {', '.join(sorted(before))}"
    assert cloudformation.response["Reason"] == f"after 4 minutes: {reason}"


def test_sleep_terminates_nodes_of_any_version(gate: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    fleet.version = "2"
    gate(request_type="Update", LaunchTemplateVersion="2", Nodes="0")
    assert cloudformation.response["Status"] == "SUCCESS"
    assert fleet.sizes == [0]


@pytest.mark.parametrize("group_first", [True, False], ids=["the group first", "this resource first"])
def test_rollback_restores_nodes_of_old_version(
    gate: Run,
    fleet: Fleet,
    functions: Lambda,
    clock: Clock,
    before: list[str],
    cloudformation: CloudFormation,
    group_first: bool,
) -> None:
    """The order in which CloudFormation reverts the group and this resource is undocumented."""
    fleet.versions.update(dict.fromkeys(before, "2"))
    fleet.version = "1" if group_first else "2"
    cloudformation.status = ROLLBACK
    gate(request_type="Update", LaunchTemplateVersion="1")
    named = ", ".join(before)
    summary = f"after a rollback: nodes to be terminated before others are launched: {named}"
    assert cloudformation.response["Data"] == {"Summary": summary}
    assert clock.now == NOON.timestamp()
    cloudformation.status = "UPDATE_ROLLBACK_COMPLETE"

    def update_the_group() -> None:
        if clock.now > NOON.timestamp() + 400:
            fleet.version = "1"

    clock.when_asleep = update_the_group
    follow(gate, functions)
    assert fleet.sizes == [0, 2]
    assert {fleet.versions[i] for i in fleet.instances} == {"1"}
    assert len(cloudformation.bodies) == 1


def test_later_deployment_stops_invocations_of_a_rollback(
    gate: Run, fleet: Fleet, functions: Lambda, before: list[str], cloudformation: CloudFormation
) -> None:
    fleet.versions.update(dict.fromkeys(before, "2"))
    cloudformation.status = ROLLBACK
    gate(request_type="Update", LaunchTemplateVersion="1")
    cloudformation.status = "UPDATE_IN_PROGRESS"
    follow(gate, functions)
    assert fleet.sizes == [0]
    assert len(cloudformation.bodies) == 1


@pytest.mark.usefixtures("before")
def test_cancelled_deployment_leaves_the_group_to_the_rollback(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    def cancel() -> None:
        cloudformation.status = ROLLBACK

    fleet.version, clock.when_asleep = "2", cancel
    gate(request_type="Update", LaunchTemplateVersion="2")
    assert fleet.sizes == [0]
    assert cloudformation.response["Reason"] == "the deployment is rolled back"


def test_cancelled_deployment_is_reported_as_failed(
    gate: Run, fleet: Fleet, functions: Lambda, cloudformation: CloudFormation
) -> None:
    fleet.room = 2
    gate(request_type="Update", Nodes="3")
    cloudformation.status = ROLLBACK
    follow(gate, functions)
    assert cloudformation.response["Status"] == "FAILED"
    assert len(fleet.instances) == 2
