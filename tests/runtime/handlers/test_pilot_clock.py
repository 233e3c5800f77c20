"""The clock's function against moto's Auto Scaling, SNS and SQS, which validate its requests."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import PartialClient
from tests.runtime.handlers.fleet import GROUP, NOON, client
from tests.runtime.handlers.pilot import STACK_ID, Reconciler, Stack
from tests.runtime.handlers.pilot_clock_runs import SCHEDULE, Run, desired, messages, new_queue, new_topic, runs, tags
from trainium_runtime.handlers.pilot_clock import GATE_EVENT
from trainium_runtime.naming import NOTIFIED_TAG, SPENT_TAG, STOPPED_TAG

BUDGET = "TrnClusterStack-trn-pilot-us-west-2-stop"


@pytest.fixture
def stack() -> Stack:
    return Stack()


@pytest.fixture
def reconciler() -> Reconciler:
    return Reconciler()


@pytest.fixture
def queue() -> str:
    return new_queue()


@pytest.fixture
def topic(queue: str) -> str:  # noqa: ARG001
    return new_topic()


@pytest.fixture
def run(stack: Stack, topic: str, reconciler: Reconciler) -> Run:
    return runs(stack, topic, reconciler)


@pytest.fixture
def inbox(queue: str) -> Callable[[], list[dict[str, str]]]:
    return partial(messages, queue)


def test_nodes_stop_at_the_end_and_reason_is_stored_and_published(run: Run, inbox: Callable[[], list[Any]]) -> None:
    for _ in range(3):
        run(100, ENDS="100h")
    assert desired() == 0
    assert tags() == {STOPPED_TAG: "end 2026-11-25T16:00Z"}
    (message,) = inbox()
    assert message["Subject"] == "trn-pilot nodes stopped"
    assert "the pilot ended at 2026-11-25T16:00Z" in message["Message"]
    assert "trn extend 8h" in message["Message"]


def test_warning_is_sent_once_with_time_and_action(run: Run, inbox: Callable[[], list[Any]]) -> None:
    run(80, ENDS="100h", ENDS_ACTION="destroy")
    run(81, ENDS="100h", ENDS_ACTION="destroy")
    (message,) = inbox()
    assert message["Subject"] == "trn-pilot ends in 20 h"
    assert "the stack is deleted" in message["Message"]
    assert tags() == {NOTIFIED_TAG: "warned of 2026-11-25T16:00Z"}


def test_unsent_warning_is_sent_by_the_next_run(run: Run, inbox: Callable[[], list[Any]]) -> None:
    silent = PartialClient(client("sns"), publish=ClientError({"Error": {"Code": "InternalError"}}, "Publish"))
    with pytest.raises(ExceptionGroup):
        run(80, ENDS="100h", clients={"sns": silent})
    assert tags() == {}
    run(80.1, ENDS="100h")
    assert len(inbox()) == 1


@pytest.mark.parametrize("call", ["publish", "tag_resource"])
def test_nodes_and_stack_are_removed_despite_sns_errors(run: Run, stack: Stack, call: str) -> None:
    refused = PartialClient(client("sns"), **{call: ClientError({"Error": {"Code": "InternalError"}}, call)})
    for hours in (100, 100.1):
        with pytest.raises(ExceptionGroup):
            run(hours, ENDS="100h", ENDS_ACTION="destroy", clients={"sns": refused})
        assert desired() == 0
    assert stack.deleted == [STACK_ID]


def test_unreadable_tags_prevent_warnings_but_not_the_stop(run: Run, inbox: Callable[[], list[Any]]) -> None:
    forgetful = {
        "sns": PartialClient(client("sns"), list_tags_for_resource=ClientError({"Error": {"Code": "X"}}, "List"))
    }
    for hours in (80, 80.1, 100):
        with pytest.raises(ExceptionGroup):
            run(hours, ENDS="100h", clients=forgetful)
    assert desired() == 0
    assert [message["Subject"] for message in inbox()] == ["trn-pilot nodes stopped"]


def test_nodes_stop_at_the_end_if_capacity_block_is_unknown(run: Run) -> None:
    silent = ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "DescribeCapacityReservations")
    ec2 = PartialClient(client("ec2"), describe_capacity_reservations=silent)
    run(100, ENDS="100h", CAPACITY_BLOCK="cr-1", clients={"ec2": ec2})
    assert desired() == 0


def test_extended_pilot_gets_its_nodes_back(run: Run) -> None:
    run(100, ENDS="100h")
    run(101, ENDS="200h")
    assert (desired(), tags()) == (2, {})


def test_group_stopped_by_hand_stays_stopped_until_a_deployment(run: Run) -> None:
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=0)
    run(1, ENDS="100h")
    assert desired() == 0
    assert run(1, GATE_EVENT, ENDS="100h").nodes == 2


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_IN_PROGRESS", "DELETE_IN_PROGRESS"])
def test_changing_stack_gets_nodes_back_only_for_the_gate(run: Run, stack: Stack, status: str) -> None:
    run(100, ENDS="100h")
    stack.status = status
    assert run(101, ENDS="200h").nodes == 2
    assert (desired(), list(tags())) == (0, [STOPPED_TAG])
    assert run(101, GATE_EVENT, ENDS="200h").nodes == 2
    assert tags() == {}  # The gate sets the size of the group.


@pytest.mark.parametrize("event", [SCHEDULE, GATE_EVENT])
def test_waking_cluster_is_not_put_back_to_sleep(run: Run, event: dict[str, Any]) -> None:
    run(1, event, ENDS="100h", ASLEEP="true")
    assert desired() == 2


def spent(name: str) -> dict[str, Any]:
    """The event with which SNS calls a function (Lambda developer guide, using Lambda with Amazon SNS)."""
    message = f"AWS Budget Notification\nBudget Name: {name}\nAlert Type: ACTUAL"
    return {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": message}}]}


BUDGETED = {"BUDGET": BUDGET, "BUDGET_USD": "500"}


def test_spent_budget_notifies_jobs_and_people_then_stops_nodes(
    run: Run, reconciler: Reconciler, inbox: Callable[[], list[Any]]
) -> None:
    for event in (spent(BUDGET), SCHEDULE, spent(BUDGET)):
        run(1, event, **BUDGETED)
    assert (desired(), tags()) == (2, {SPENT_TAG: "500 since 2026-11-21T13:00Z"})
    assert reconciler.sent[0]["pilot-stop"]["at"] == "2026-11-21T13:15:00Z"
    run(1.25, **BUDGETED)
    assert (desired(), tags()[STOPPED_TAG]) == (0, "budget 500")
    soon, stopped = inbox()
    assert (soon["Subject"], stopped["Subject"]) == ("trn-pilot nodes stop soon", "trn-pilot nodes stopped")
    assert "terminated at 2026-11-21T13:15Z: the budget of $500 is spent" in soon["Message"]


def test_nodes_stop_immediately_if_spent_budget_cannot_be_stored(run: Run) -> None:
    refused = ClientError({"Error": {"Code": "AccessDenied"}}, "TagResource")
    with pytest.raises(ExceptionGroup):
        run(1, spent(BUDGET), clients={"sns": PartialClient(client("sns"), tag_resource=refused)}, **BUDGETED)
    assert desired() == 0


@pytest.mark.parametrize("event", [spent("another"), {"Records": [{}]}, {"Records": []}, {}])
def test_message_about_something_else_stops_nothing(run: Run, event: dict[str, Any]) -> None:
    run(1, event, BUDGET=BUDGET, BUDGET_USD="500")
    assert (desired(), tags()) == (2, {})


def test_stack_is_deleted_once_its_nodes_are_terminated(run: Run, stack: Stack) -> None:
    run(100, ENDS="100h", ENDS_ACTION="destroy")
    assert stack.deleted == []
    run(100.1, ENDS="100h", ENDS_ACTION="destroy")
    assert stack.deleted == [STACK_ID]


def test_changing_stack_is_not_deleted(run: Run, stack: Stack) -> None:
    run(100, ENDS="100h", ENDS_ACTION="destroy")
    for stack.status in ("UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"):
        run(100.1, ENDS="100h", ENDS_ACTION="destroy")
    assert stack.deleted == []


def test_refused_deletion_is_retried_and_published_once(run: Run, stack: Stack, inbox: Callable[[], list[Any]]) -> None:
    run(100, ENDS="100h", ENDS_ACTION="destroy")
    stack.refusal = "TerminationProtection is enabled"
    for _ in range(3):
        with pytest.raises(ExceptionGroup):
            run(100.1, ENDS="100h", ENDS_ACTION="destroy")
    stack.refusal = ""
    run(100.2, ENDS="100h", ENDS_ACTION="destroy")
    assert stack.deleted == [STACK_ID]
    *_, deleted, refused = inbox()
    assert deleted["Subject"] == "trn-pilot is being deleted"
    assert "TerminationProtection is enabled" in refused["Message"]
    assert inbox() == []


def with_standby_node() -> dict[str, Any]:
    """A client with an Auto Scaling group of size 0, which still has a node that it does not terminate."""
    left = {"AutoScalingGroups": [{"DesiredCapacity": 0, "Instances": [{"LifecycleState": "Standby"}]}]}
    return {"autoscaling": PartialClient(client("autoscaling"), describe_auto_scaling_groups=left)}


def test_unterminated_nodes_are_reported_once_and_stack_is_deleted(
    run: Run, stack: Stack, inbox: Callable[[], list[Any]]
) -> None:
    for hours in (100.5, 101, 102):
        run(hours, ENDS="100h", clients=with_standby_node())
    assert [message["Subject"] for message in inbox()] == ["trn-pilot nodes are left"]
    run(100.9, ENDS="100h", ENDS_ACTION="destroy", clients=with_standby_node())
    assert stack.deleted == []
    run(101, ENDS="100h", ENDS_ACTION="destroy", clients=with_standby_node())
    assert stack.deleted == [STACK_ID]


def test_end_of_stack_without_group_is_announced_and_stack_is_deleted(
    run: Run, stack: Stack, inbox: Callable[[], list[Any]]
) -> None:
    for hours in (80, 99.9):
        run(hours, ENDS="100h", ENDS_ACTION="destroy", GROUP=None, RECONCILER=None)
    assert stack.deleted == []
    run(100, ENDS="100h", ENDS_ACTION="destroy", GROUP=None, RECONCILER=None)
    assert stack.deleted == [STACK_ID]
    assert [message["Subject"] for message in inbox()] == ["trn-pilot ends in 20 h", "trn-pilot is being deleted"]


SOON = {"at": "2026-11-25T16:00:00Z", "reason": "the pilot ends at 2026-11-25T16:00Z"}


def test_deployment_that_moves_the_end_withdraws_the_notice(run: Run, reconciler: Reconciler) -> None:
    run(99.8, GATE_EVENT, ENDS="100h")
    run(99.9, GATE_EVENT, ENDS="200h")
    assert reconciler.sent == [{"pilot-stop": SOON}, {"pilot-stop": None}]


def in_block(state: str = "active") -> dict[str, Any]:
    """A client with one Capacity Block, from 10 to 34 hours after noon. moto has no Capacity Blocks."""
    times = {"StartDate": NOON + timedelta(hours=10), "EndDate": NOON + timedelta(hours=34)}
    found = {"CapacityReservations": [{"State": state, "InstanceType": "trn2.48xlarge", **times}]}
    return {"ec2": PartialClient(client("ec2"), describe_capacity_reservations=found)}


def test_nodes_run_only_within_their_capacity_block(run: Run, inbox: Callable[[], list[Any]]) -> None:
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=0)
    sizes: list[int] = []
    for hours in (1, 10.1, 33, 33.3):
        run(hours, CAPACITY_BLOCK="cr-1", clients=in_block())
        sizes.append(desired())
    assert sizes == [0, 2, 2, 0]
    assert [m["Subject"] for m in inbox()] == ["trn-pilot nodes started", "trn-pilot nodes stopped"]


def test_failed_ec2_call_changes_nothing(run: Run) -> None:
    failed = ClientError({"Error": {"Code": "RequestLimitExceeded"}}, "DescribeCapacityReservations")
    with pytest.raises(ClientError):
        run(
            11,
            CAPACITY_BLOCK="cr-1",
            clients={"ec2": PartialClient(client("ec2"), describe_capacity_reservations=failed)},
        )
    assert desired() == 2


def test_missing_group_needs_no_action(run: Run) -> None:
    client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    assert run(100, ENDS="100h").nodes == 0


def test_capacity_block_unknown_to_ec2_stops_the_nodes(run: Run) -> None:
    unknown = ClientError({"Error": {"Code": "InvalidCapacityReservationId.NotFound"}}, "DescribeCapacityReservations")
    ec2 = PartialClient(client("ec2"), describe_capacity_reservations=unknown)
    run(11, CAPACITY_BLOCK="cr-1", clients={"ec2": ec2})
    assert desired() == 0


def test_failed_deletion_is_retried_and_published_once(run: Run, stack: Stack, inbox: Callable[[], list[Any]]) -> None:
    run(100, ENDS="100h", ENDS_ACTION="destroy")
    stack.status = "DELETE_FAILED"
    for _ in range(3):
        run(100.1, ENDS="100h", ENDS_ACTION="destroy")
    assert stack.deleted == 3 * [STACK_ID]
    stopped, failed = inbox()
    assert (stopped["Subject"], failed["Subject"]) == ("trn-pilot nodes stopped", "trn-pilot could not be deleted")
    assert "[Topic]" in failed["Message"]


def test_spent_budget_stops_nodes_until_it_is_raised(run: Run) -> None:
    run(1, spent(BUDGET), **BUDGETED)
    for hours in (1.25, 2):
        run(hours, **BUDGETED)
        assert desired() == 0
    run(3, **{**BUDGETED, "BUDGET_USD": "600"})
    assert (desired(), tags()) == (2, {})
