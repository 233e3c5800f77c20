"""What the controller does for a pilot, against moto's Auto Scaling, S3, SNS and SQS, which validate its requests."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import CloudFormation, Inbox, Look, PartialClient, Run
from tests.runtime.handlers.fleet import (
    BUCKET,
    DELETION_ARN,
    GROUP,
    NOON,
    Fleet,
    Lambda,
    Stack,
    client,
    desired,
    set_size,
    topic_tags,
)
from trainium_runtime.naming import NOTIFIED_TAG, SPENT_TAG, STOPPED_TAG
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership

BUDGET = "TrnClusterStack-trn-pilot-us-west-2-stop"
BUDGETED = {"BUDGET": BUDGET, "BUDGET_USD": "500"}
DESTROYED = {"ENDS": "100h", "STACK_DELETION": DELETION_ARN}
WITHOUT_GROUP = {"GROUP": None, "REPLACEMENTS": None}


def notices() -> list[tuple[str, str]]:
    """Kind and time of the notices to jobs."""
    try:
        text = client("s3").get_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY)["Body"].read().decode()
    except client("s3").exceptions.NoSuchKey:
        return []
    return [(notice.kind, notice.at) for notice in Membership.from_json(text).notices]


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, operation)


def test_nodes_stop_at_the_end_and_reason_is_stored_and_published(run: Look, inbox: Inbox) -> None:
    for _ in range(3):
        run(100, ENDS="100h")
    assert desired() == 0
    assert topic_tags() == {STOPPED_TAG: "end 2026-11-25T16:00Z"}
    (message,) = inbox()
    assert message["Subject"] == "trn-pilot nodes stopped"
    assert "the pilot ended at 2026-11-25T16:00Z" in message["Message"]
    assert "trn extend 8h" in message["Message"]


def test_notices_go_to_the_topic_of_the_app_and_the_state_to_that_of_the_pilot(
    run: Look, inbox: Inbox, pilot: dict[str, str]
) -> None:
    state: str = client("sns").create_topic(Name="state")["TopicArn"]
    run(100, ENDS="100h", TOPIC=state, NOTICES=pilot["TOPIC"])
    assert [message["Subject"] for message in inbox()] == ["trn-pilot nodes stopped"]
    tags = [client("sns").list_tags_for_resource(ResourceArn=arn)["Tags"] for arn in (pilot["TOPIC"], state)]
    assert [[tag["Key"] for tag in found] for found in tags] == [[], [STOPPED_TAG]]


def test_warning_is_sent_once_with_time_and_action(run: Look, inbox: Inbox) -> None:
    run(80, **DESTROYED)
    run(81, **DESTROYED)
    (message,) = inbox()
    assert message["Subject"] == "trn-pilot ends in 20 h"
    assert "the stack is deleted" in message["Message"]
    assert topic_tags() == {NOTIFIED_TAG: "warned of 2026-11-25T16:00Z"}


def test_unsent_warning_is_sent_by_the_next_look(run: Look, clients: dict[str, Any], inbox: Inbox) -> None:
    clients["sns"] = PartialClient(client("sns"), publish=refused("InternalError", "Publish"))
    with pytest.raises(ExceptionGroup):
        run(80, ENDS="100h")
    assert topic_tags() == {}
    clients["sns"] = client("sns")
    run(80.1, ENDS="100h")
    assert len(inbox()) == 1


@pytest.mark.parametrize("call", ["publish", "tag_resource"])
def test_nodes_and_stack_are_removed_despite_sns_errors(
    run: Look, clients: dict[str, Any], functions: Lambda, call: str
) -> None:
    clients["sns"] = PartialClient(client("sns"), **{call: refused("InternalError", call)})
    for hours in (100, 100.1):
        with pytest.raises(ExceptionGroup):
            run(hours, **DESTROYED)
        assert desired() == 0
    assert functions.deletions == 1


def test_unreadable_tags_prevent_warnings_but_not_the_stop(run: Look, clients: dict[str, Any], inbox: Inbox) -> None:
    clients["sns"] = PartialClient(client("sns"), list_tags_for_resource=refused("X", "ListTagsForResource"))
    for hours in (80, 80.1, 100):
        with pytest.raises(ExceptionGroup):
            run(hours, ENDS="100h")
    assert desired() == 0
    assert [message["Subject"] for message in inbox()] == ["trn-pilot nodes stopped"]


def test_extended_pilot_gets_its_nodes_back(run: Look) -> None:
    run(100, ENDS="100h")
    run(101, ENDS="200h")
    assert (desired(), topic_tags()) == (2, {})


def test_group_stopped_by_hand_stays_stopped_until_a_deployment(run: Look, deploy_pilot: Run, fleet: Fleet) -> None:
    set_size(0)
    run(1, ENDS="100h")
    assert desired() == 0
    deploy_pilot(ENDS="100h")
    assert fleet.sizes == [2]


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_IN_PROGRESS", "DELETE_IN_PROGRESS"])
def test_changing_stack_gets_nodes_back_only_by_its_deployment(run: Look, stack: Stack, status: str) -> None:
    run(100, ENDS="100h")
    stack.status = status
    run(101, ENDS="200h")
    assert (desired(), list(topic_tags())) == (0, [STOPPED_TAG])


def test_deployment_after_the_end_forgets_the_stop(run: Look, deploy_pilot: Run) -> None:
    run(100, ENDS="100h")
    deploy_pilot(ENDS="200h")
    assert (desired(), topic_tags()) == (2, {})


def test_waking_cluster_is_not_put_back_to_sleep(run: Look) -> None:
    run(1, ENDS="100h", ASLEEP="true")
    assert desired() == 2


def test_clock_that_aws_denies_at_first_is_read_again_by_the_deployment(
    deploy_pilot: Run, clients: dict[str, Any], cloudformation: CloudFormation
) -> None:
    answers: list[Any] = [refused("AccessDenied", "ListTagsForResource"), {"Tags": []}]

    def list_tags(**_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    clients["sns"] = PartialClient(client("sns"), list_tags_for_resource=list_tags)
    deploy_pilot(ENDS="100h")
    assert answers == []
    assert cloudformation.response["Status"] == "SUCCESS"


def test_failing_clock_fails_the_deployment_with_its_message(
    deploy_pilot: Run, clients: dict[str, Any], cloudformation: CloudFormation
) -> None:
    error = ClientError({"Error": {"Code": "AccessDenied", "Message": "no such topic"}}, "ListTagsForResource")
    clients["sns"] = PartialClient(client("sns"), list_tags_for_resource=error)
    deploy_pilot(ENDS="100h")
    assert cloudformation.response["Status"] == "FAILED"
    assert "no such topic" in cloudformation.response["Reason"]


def spent(name: str) -> dict[str, Any]:
    """The event with which SNS calls a function (Lambda developer guide, using Lambda with Amazon SNS)."""
    message = f"AWS Budget Notification\nBudget Name: {name}\nAlert Type: ACTUAL"
    return {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": message}}]}


def test_spent_budget_notifies_jobs_and_people_then_stops_nodes(run: Look, inbox: Inbox) -> None:
    for event in (spent(BUDGET), None, spent(BUDGET)):
        run(1, event, **BUDGETED)
    assert (desired(), topic_tags()) == (2, {SPENT_TAG: "500 since 2026-11-21T13:00Z"})
    assert notices() == [("pilot-stop", "2026-11-21T13:15:00Z")]
    run(1.25, **BUDGETED)
    assert (desired(), topic_tags()[STOPPED_TAG]) == (0, "budget 500")
    soon, stopped = inbox()
    assert (soon["Subject"], stopped["Subject"]) == ("trn-pilot nodes stop soon", "trn-pilot nodes stopped")
    assert "terminated at 2026-11-21T13:15Z: the budget of $500 is spent" in soon["Message"]


def test_nodes_stop_immediately_if_spent_budget_cannot_be_stored(run: Look, clients: dict[str, Any]) -> None:
    clients["sns"] = PartialClient(client("sns"), tag_resource=refused("AccessDenied", "TagResource"))
    with pytest.raises(ExceptionGroup):
        run(1, spent(BUDGET), **BUDGETED)
    assert desired() == 0


@pytest.mark.parametrize("event", [spent("another"), {"Records": [{}]}, {"Records": []}, {}])
def test_message_about_something_else_stops_nothing(run: Look, event: dict[str, Any]) -> None:
    run(1, event, **BUDGETED)
    assert (desired(), topic_tags()) == (2, {})


def test_spent_budget_stops_nodes_until_it_is_raised(run: Look) -> None:
    run(1, spent(BUDGET), **BUDGETED)
    for hours in (1.25, 2):
        run(hours, **BUDGETED)
        assert desired() == 0
    run(3, **{**BUDGETED, "BUDGET_USD": "600"})
    assert (desired(), topic_tags()) == (2, {})


def test_stack_is_deleted_once_its_nodes_are_terminated(run: Look, functions: Lambda) -> None:
    run(100, **DESTROYED)
    assert functions.deletions == 0
    run(100.1, **DESTROYED)
    assert functions.deletions == 1


def test_changing_stack_is_not_deleted(run: Look, stack: Stack, functions: Lambda) -> None:
    run(100, **DESTROYED)
    for stack.status in ("UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"):
        run(100.1, **DESTROYED)
    assert functions.deletions == 0


def test_refused_deletion_is_retried_and_published_once(run: Look, functions: Lambda, inbox: Inbox) -> None:
    run(100, **DESTROYED)
    functions.deletion_error = "TerminationProtection is enabled"
    for _ in range(3):
        with pytest.raises(ExceptionGroup):
            run(100.1, **DESTROYED)
    functions.deletion_error = ""
    run(100.2, **DESTROYED)
    assert functions.deletions == 1
    *_, deleted, failed = inbox()
    assert deleted["Subject"] == "trn-pilot is being deleted"
    assert "no message if the deletion fails" in deleted["Message"]
    assert "TerminationProtection is enabled" in failed["Message"]
    assert inbox() == []


def test_failed_deletion_is_retried_and_published_once(
    run: Look, stack: Stack, functions: Lambda, inbox: Inbox
) -> None:
    run(100, **DESTROYED)
    stack.status = "DELETE_FAILED"
    for _ in range(3):
        run(100.1, **DESTROYED)
    assert functions.deletions == 3
    stopped, failed = inbox()
    assert (stopped["Subject"], failed["Subject"]) == ("trn-pilot nodes stopped", "trn-pilot could not be deleted")
    assert "[Topic]" in failed["Message"]


def test_unterminated_nodes_are_reported_once_and_stack_is_deleted(
    run: Look, clients: dict[str, Any], functions: Lambda, inbox: Inbox
) -> None:
    standby = {"InstanceId": "i-1", "LifecycleState": "Standby", "HealthStatus": "Healthy"}
    left = {"AutoScalingGroups": [{"DesiredCapacity": 0, "Instances": [standby]}]}
    clients["autoscaling"] = PartialClient(client("autoscaling"), describe_auto_scaling_groups=left)
    for hours in (100.5, 101, 102):
        run(hours, ENDS="100h")
    assert [message["Subject"] for message in inbox()] == ["trn-pilot nodes are left"]
    run(100.9, **DESTROYED)
    assert functions.deletions == 0
    run(101, **DESTROYED)
    assert functions.deletions == 1


def test_end_of_stack_without_group_is_announced_and_stack_is_deleted(
    run: Look, functions: Lambda, inbox: Inbox
) -> None:
    for hours in (80, 99.9):
        run(hours, **{**DESTROYED, **WITHOUT_GROUP})
    assert functions.deletions == 0
    run(100, **{**DESTROYED, **WITHOUT_GROUP})
    assert functions.deletions == 1
    assert [message["Subject"] for message in inbox()] == ["trn-pilot ends in 20 h", "trn-pilot is being deleted"]


def in_block(state: str = "active") -> PartialClient:
    """A client with one Capacity Block, from 10 to 34 hours after noon. moto has no Capacity Blocks."""
    times = {"StartDate": NOON + timedelta(hours=10), "EndDate": NOON + timedelta(hours=34)}
    found = {"CapacityReservations": [{"State": state, "InstanceType": "trn2.48xlarge", **times}]}
    return PartialClient(client("ec2"), describe_capacity_reservations=found)


def test_nodes_run_only_within_their_capacity_block(run: Look, clients: dict[str, Any], inbox: Inbox) -> None:
    clients["ec2"] = in_block()
    set_size(0)
    sizes: list[int] = []
    for hours in (1, 10.1, 33, 33.3):
        run(hours, CAPACITY_BLOCK="cr-1")
        sizes.append(desired())
    assert sizes == [0, 2, 2, 0]
    assert [m["Subject"] for m in inbox()] == ["trn-pilot nodes started", "trn-pilot nodes stopped"]


def test_slurm_jobs_get_a_notice_of_the_end_of_their_capacity_block(run: Look, clients: dict[str, Any]) -> None:
    clients["ec2"] = in_block()
    for hours in (32.9, 33.1, 33.3):
        run(hours, CAPACITY_BLOCK="cr-1", **WITHOUT_GROUP)
        found = [] if hours < 33 else [("pilot-stop", "2026-11-22T21:15:00Z")]
        assert notices() == found


def test_slurm_jobs_get_a_notice_of_the_end_of_the_pilot(run: Look) -> None:
    run(99.9, **{**DESTROYED, **WITHOUT_GROUP})
    assert notices() == [("pilot-stop", "2026-11-25T16:00:00Z")]


def test_deployment_before_a_capacity_block_expects_no_nodes(
    deploy_pilot: Run, clients: dict[str, Any], cloudformation: CloudFormation
) -> None:
    clients["ec2"] = in_block()
    deploy_pilot(CAPACITY_BLOCK="cr-1")
    assert desired() == 0
    summary = "no nodes, as planned: Capacity Block cr-1 begins at 2026-11-21T22:00Z; the nodes launch then"
    assert cloudformation.response["Data"] == {"State": "ready", "Nodes": "0", "Summary": summary}


@pytest.mark.parametrize(("hours", "more"), [(11, {}), (9, {"ENDS": "8h"})])
def test_unreadable_capacity_block_changes_nothing(
    run: Look, clients: dict[str, Any], hours: float, more: dict[str, str]
) -> None:
    failed = refused("RequestLimitExceeded", "DescribeCapacityReservations")
    clients["ec2"] = PartialClient(client("ec2"), describe_capacity_reservations=failed)
    with pytest.raises(ClientError):
        run(hours, CAPACITY_BLOCK="cr-1", **more)
    assert desired() == 2


def test_duration_counts_from_the_start_of_the_capacity_block(
    run: Look, clients: dict[str, Any], functions: Lambda
) -> None:
    clients["ec2"] = in_block()
    set_size(0)
    sizes: list[int] = []
    for hours in (9, 10.1, 17.9, 18.1):
        run(hours, **{**DESTROYED, "ENDS": "8h", "CAPACITY_BLOCK": "cr-1"})
        sizes.append(desired())
    assert sizes == [0, 2, 2, 0]
    assert functions.deletions == 0


def test_nodes_stop_at_the_end_if_capacity_block_is_unreadable(run: Look, clients: dict[str, Any]) -> None:
    failed = refused("UnauthorizedOperation", "DescribeCapacityReservations")
    clients["ec2"] = PartialClient(client("ec2"), describe_capacity_reservations=failed)
    run(100, ENDS="2026-11-25T16:00Z", CAPACITY_BLOCK="cr-1")
    assert desired() == 0


def test_capacity_block_that_ec2_does_not_have_stops_the_nodes(run: Look, clients: dict[str, Any]) -> None:
    unknown = refused("InvalidCapacityReservationId.NotFound", "DescribeCapacityReservations")
    clients["ec2"] = PartialClient(client("ec2"), describe_capacity_reservations=unknown)
    run(11, CAPACITY_BLOCK="cr-1")
    assert desired() == 0


def test_missing_group_needs_no_action(run: Look, functions: Lambda) -> None:
    client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    run(100, **DESTROYED)
    assert (topic_tags(), functions.deletions) == ({}, 0)
