"""Custom::TrnFleetReadiness: its responses, its invocations, rollback and deletion, against moto."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tests.runtime.handlers.conftest import CloudFormation, PartialClient, Run
from tests.runtime.handlers.fleet import GROUP, NOON, Clock, Fleet, Lambda, Stack, client
from trainium_runtime.controller import reading
from trainium_runtime.handlers import fleet_readiness

ROLLBACK = "UPDATE_ROLLBACK_IN_PROGRESS"


def follow(deploy: Run, functions: Lambda) -> None:
    """Run the invocations that the function requested, until it requests no more."""
    while functions.events:
        deploy(functions.events.pop(0))


def test_deployment_of_verified_nodes_is_completed_with_data(
    deploy: Run, fleet: Fleet, cloudformation: CloudFormation
) -> None:
    fleet.verify(*fleet.instances)
    deploy()
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["Data"] == {"State": "ready", "Nodes": "2", "Summary": "2 of 2 nodes verified"}
    assert cloudformation.response["PhysicalResourceId"] == f"{GROUP}/readiness"


def test_failed_node_fails_the_deployment(deploy: Run, fleet: Fleet, cloudformation: CloudFormation) -> None:
    fleet.fail(fleet.instances[1], "no driver")
    deploy()
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"] == f"node {fleet.instances[1]}: no driver"


def test_deployment_waits_for_a_record_written_later(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.verify(first)
    clock.when_asleep = lambda: fleet.verify(second) if clock.now > NOON.timestamp() + 300 else None
    deploy()
    assert cloudformation.response["Status"] == "SUCCESS"
    assert 300 < clock.now - NOON.timestamp() < 330


def test_failed_node_is_replaced_while_the_deployment_waits(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation, capsys: pytest.CaptureFixture[str]
) -> None:
    _, second = fleet.instances
    fleet.fail(second, "no driver")

    def replace_unhealthy() -> None:
        if second in fleet.unhealthy:
            fleet.replace(second)
            fleet.verify(*fleet.instances)

    clock.when_asleep = replace_unhealthy
    deploy(settings={"REPLACEMENTS": "1"})
    assert cloudformation.response["Status"] == "SUCCESS"
    assert f"node {second}: no driver; being replaced (1 of 1)" in capsys.readouterr().out


def test_membership_is_written_while_the_deployment_waits(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.verify(*fleet.instances, connected=False)
    clock.when_asleep = fleet.connect
    deploy()
    assert cloudformation.response["Status"] == "SUCCESS"


@pytest.mark.parametrize("error", ["denied", "offline"])
def test_unreadable_console_does_not_fail_the_deployment(
    deploy: Run, fleet: Fleet, clock: Clock, consoles: dict[str, str], cloudformation: CloudFormation, error: str
) -> None:
    consoles.update(dict.fromkeys(fleet.instances, error))
    clock.when_asleep = lambda: fleet.verify(*fleet.instances)
    deploy()
    assert cloudformation.response["Status"] == "SUCCESS"


def test_failed_node_step_does_not_fail_the_deployment(
    deploy: Run, fleet: Fleet, clients: dict[str, Any], cloudformation: CloudFormation
) -> None:
    fleet.verify(*fleet.instances)
    denied = ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "CreateTags")
    clients["ec2"] = PartialClient(client("ec2"), create_tags=denied)
    deploy()
    assert cloudformation.response["Status"] == "SUCCESS"


def test_ending_invocation_requests_another_without_response(
    deploy: Run, clock: Clock, functions: Lambda, cloudformation: CloudFormation
) -> None:
    event = deploy()
    assert cloudformation.bodies == []
    (again,) = functions.events
    assert again.pop("TrnState")["started"] == NOON.timestamp()
    assert again == event
    assert 60 <= NOON.timestamp() + 15 * 60 - clock.now < 90  # Enough of its 15 minutes is left to answer.


def test_invocations_share_one_timeout_that_names_silent_nodes(
    deploy: Run, fleet: Fleet, clock: Clock, functions: Lambda, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.verify(first)
    deploy(TimeoutMinutes="20")
    deploy(functions.events[0])
    assert len(functions.events) == 1
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"] == (
        f"after 20 minutes: 1 of 2 nodes verified, 2 launched; no record yet from {second}"
    )
    assert 19.5 < (clock.now - NOON.timestamp()) / 60 <= 20


@pytest.mark.parametrize("broken", [{"settings": {"RECORDS_BUCKET": "nonsense"}}, {"TimeoutMinutes": "nonsense"}])
def test_exception_sends_a_response_to_cloudformation(
    deploy: Run, cloudformation: CloudFormation, broken: dict[str, Any]
) -> None:
    deploy(**broken)
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"].startswith("the state of the fleet could not be read: ")
    assert "nonsense" in cloudformation.response["Reason"] or "NoSuchBucket" in cloudformation.response["Reason"]


def test_missing_group_fails_the_deployment(deploy: Run, cloudformation: CloudFormation) -> None:
    deploy(settings={"GROUP": "another"})
    assert "the Auto Scaling group another does not exist" in cloudformation.response["Reason"]


def test_refused_next_invocation_sends_a_response(
    deploy: Run, functions: Lambda, cloudformation: CloudFormation
) -> None:
    message = "not authorized to perform lambda:InvokeFunction"
    functions.refusal = ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, "Invoke")
    deploy()
    assert "lambda:InvokeFunction" in cloudformation.response["Reason"]


def test_connection_error_is_retried(
    deploy: Run, fleet: Fleet, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.verify(*fleet.instances)
    find_group = reading.find_group
    errors = iter([EndpointConnectionError(endpoint_url="https://example.com")])

    def fail_once(*arguments: Any) -> Any:
        if error := next(errors, None):
            raise error
        return find_group(*arguments)

    monkeypatch.setattr(reading, "find_group", fail_once)
    deploy()
    assert cloudformation.response["Status"] == "SUCCESS"


@pytest.mark.parametrize("nodes", [1, 4])
def test_group_gets_the_size_of_the_deployment(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation, nodes: int
) -> None:
    fleet.room = nodes
    clock.when_asleep = lambda: fleet.verify(*fleet.instances)
    deploy(request_type="Update", Nodes=str(nodes))
    assert cloudformation.response["Data"]["Nodes"] == str(nodes)
    assert fleet.sizes == [nodes]


def test_deployment_of_sleeping_cluster_waits_for_terminated_nodes(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.fail(fleet.instances[0], "no longer relevant")
    deploy(Nodes="0")
    summary = "no nodes, as planned: the cluster is asleep"
    assert cloudformation.response["Data"] == {"State": "ready", "Nodes": "0", "Summary": summary}
    assert fleet.sizes == [0]
    assert clock.now > NOON.timestamp()


class Terminations:
    """EC2's view of the fleet's instances, which take a while to terminate after leaving their group."""

    def __init__(self, fleet: Fleet, clock: Clock, seconds: float) -> None:
        self._before, self._fleet, self._clock, self._seconds = fleet.instances, fleet, clock, seconds

    def describe(self, *_: object) -> dict[str, dict[str, object]]:
        gone = self._clock.now > NOON.timestamp() + self._seconds
        states = dict.fromkeys(self._fleet.instances, "running") | {
            i: "terminated" if gone else "shutting-down" for i in self._before if i not in self._fleet.instances
        }
        return {
            i: {
                "State": {"Name": state},
                "SubnetId": self._fleet.subnet,
                **({"PrivateIpAddress": self._fleet.address(i)} if state == "running" else {}),
            }
            for i, state in states.items()
        }


@pytest.fixture
def before(fleet: Fleet, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes before an update that requires new ones. Their termination takes five minutes; new ones get records of
    verified nodes.
    """
    monkeypatch.setattr(reading, "describe_instances", Terminations(fleet, clock, 300).describe)
    before = fleet.instances
    fleet.versions.update(dict.fromkeys(before, "1"))
    fleet.verify(*before)

    def verify_new_ones() -> None:
        if fleet.instances and not set(before) & set(fleet.instances):
            fleet.verify(*fleet.instances)

    clock.when_asleep = verify_new_ones
    return before


def test_old_nodes_terminate_before_new_ones_are_launched(
    deploy: Run, fleet: Fleet, clock: Clock, before: list[str], cloudformation: CloudFormation
) -> None:
    fleet.version = "2"
    deploy(request_type="Update", LaunchTemplateVersion="2")
    assert cloudformation.response["Data"]["Nodes"] == "2"
    assert fleet.sizes == [0, 2]
    assert not set(before) & set(fleet.instances)
    assert clock.now > NOON.timestamp() + 300


def test_replacement_continues_in_next_invocation(
    deploy: Run,
    fleet: Fleet,
    clock: Clock,
    functions: Lambda,
    before: list[str],
    cloudformation: CloudFormation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "describe_instances", Terminations(fleet, clock, 1200).describe)
    fleet.version = "2"
    deploy(request_type="Update", LaunchTemplateVersion="2", TimeoutMinutes="50")
    assert functions.events[0]["TrnState"]["progress"]["ended"] == sorted(before)
    follow(deploy, functions)
    assert cloudformation.response["Status"] == "SUCCESS"
    assert fleet.sizes == [0, 2]
    assert clock.now > NOON.timestamp() + 1200


@pytest.mark.parametrize("group_first", [True, False], ids=["the group first", "this resource first"])
def test_rollback_restores_nodes_of_old_version(
    deploy: Run,
    fleet: Fleet,
    functions: Lambda,
    clock: Clock,
    stack: Stack,
    before: list[str],
    cloudformation: CloudFormation,
    group_first: bool,
) -> None:
    """The order in which CloudFormation reverts the group and this resource is undocumented."""
    fleet.versions.update(dict.fromkeys(before, "2"))
    fleet.version = "1" if group_first else "2"
    stack.status = ROLLBACK
    deploy(request_type="Update", LaunchTemplateVersion="1")
    named = ", ".join(before)
    summary = f"after a rollback: nodes to be terminated before others are launched: {named}"
    assert cloudformation.response["Data"] == {"State": "waiting", "Nodes": "0", "Summary": summary}
    assert clock.now == NOON.timestamp()
    stack.status = "UPDATE_ROLLBACK_COMPLETE"

    def update_the_group() -> None:
        if clock.now > NOON.timestamp() + 400:
            fleet.version = "1"

    clock.when_asleep = update_the_group
    follow(deploy, functions)
    assert fleet.sizes == [0, 2]
    assert {fleet.versions[i] for i in fleet.instances} == {"1"}
    assert len(cloudformation.bodies) == 1


def test_later_deployment_stops_invocations_of_a_rollback(
    deploy: Run, fleet: Fleet, functions: Lambda, stack: Stack, before: list[str], cloudformation: CloudFormation
) -> None:
    fleet.versions.update(dict.fromkeys(before, "2"))
    stack.status = ROLLBACK
    deploy(request_type="Update", LaunchTemplateVersion="1")
    stack.status = "UPDATE_IN_PROGRESS"
    follow(deploy, functions)
    assert fleet.sizes == [0]
    assert len(cloudformation.bodies) == 1


@pytest.mark.usefixtures("before")
def test_cancelled_deployment_leaves_the_group_to_the_rollback(
    deploy: Run, fleet: Fleet, clock: Clock, stack: Stack, cloudformation: CloudFormation
) -> None:
    def cancel() -> None:
        stack.status = ROLLBACK

    fleet.version, clock.when_asleep = "2", cancel
    deploy(request_type="Update", LaunchTemplateVersion="2")
    assert fleet.sizes == [0]
    assert (cloudformation.response["Status"], cloudformation.response["Reason"]) == (
        "FAILED",
        "the deployment is rolled back",
    )


def test_cancelled_deployment_is_not_taken_for_its_rollback(
    deploy: Run, fleet: Fleet, functions: Lambda, stack: Stack, cloudformation: CloudFormation
) -> None:
    """The next invocation for a waiting deployment finds a stack that is rolling back."""
    fleet.room = 2
    deploy(request_type="Update", Nodes="3")
    stack.status = ROLLBACK
    follow(deploy, functions)
    assert cloudformation.response["Status"] == "FAILED"
    assert len(fleet.instances) == 2


def test_rollback_does_not_wait_and_reports_the_nodes(
    deploy: Run, fleet: Fleet, clock: Clock, stack: Stack, cloudformation: CloudFormation
) -> None:
    first, second = fleet.instances
    fleet.verify(first)
    fleet.fail(second, "no driver")
    stack.status = ROLLBACK
    deploy(request_type="Update")
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["Data"]["Summary"] == f"after a rollback: node {second}: no driver"
    assert clock.now == NOON.timestamp()


def test_rollback_restores_the_size_of_the_group(deploy: Run, fleet: Fleet, stack: Stack) -> None:
    stack.status = ROLLBACK
    deploy(request_type="Update", Nodes="1")
    assert len(fleet.instances) == 1


@pytest.mark.parametrize("broken", ["RECORDS_BUCKET", "GROUP"])
def test_error_does_not_fail_a_rollback(deploy: Run, stack: Stack, cloudformation: CloudFormation, broken: str) -> None:
    stack.status = ROLLBACK
    deploy(request_type="Update", settings={broken: "nonsense"})
    assert cloudformation.response["Status"] == "SUCCESS"


def test_deletion_terminates_every_node_first(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = [{i: {"State": {"Name": state}} for i in fleet.instances} for state in ("shutting-down", "terminated")]
    monkeypatch.setattr(fleet_readiness, "describe_instances", lambda *_: going.pop(0))
    deploy(request_type="Delete")
    assert fleet.sizes == [0]
    assert clock.now > NOON.timestamp()
    assert cloudformation.response["Status"] == "SUCCESS"


def test_unterminated_node_delays_deletion_until_the_deadline(
    deploy: Run,
    clock: Clock,
    functions: Lambda,
    cloudformation: CloudFormation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stuck = {"i-1": {"State": {"Name": "shutting-down"}}}
    monkeypatch.setattr(fleet_readiness, "describe_instances", lambda *_: stuck)
    deploy(request_type="Delete", TimeoutMinutes="30")
    invocations = 1
    while functions.events:
        deploy(functions.events.pop(0))
        invocations += 1
    assert invocations == 3
    assert 29 * 60 < clock.now - NOON.timestamp() <= 30 * 60
    assert cloudformation.response["Status"] == "SUCCESS"


def test_delete_sends_a_response_despite_aws_errors(
    deploy: Run, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(service: str) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, service)

    monkeypatch.setattr(boto3, "client", refuse)
    deploy(request_type="Delete")
    assert (cloudformation.response["Status"], cloudformation.response["PhysicalResourceId"]) == (
        "SUCCESS",
        f"{GROUP}/readiness",
    )
