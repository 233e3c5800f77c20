"""The past cost of a cluster: billed, estimated and unknown amounts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.stub import Stubber

from tests.core.fake_audit import CLUSTER, NOW, FakeLister, resource
from tests.core.fake_capacity import SCHEDULED_BLOCK, FakeCapacity
from tests.core.fake_spending import (
    FIRST,
    SECOND,
    FakeSpendingAccount,
    cluster_stack,
    launched,
    terminated,
)
from tests.core.plans import from_settings
from trainium_core.audit.resource import Charge, ChargedItem, Resource
from trainium_core.aws.capacity import Reservation
from trainium_core.naming import STACK_NAME
from trainium_core.spending.aws_account import COST_EXPLORER_REGION, AwsSpendingAccount
from trainium_core.spending.runner import spending
from trainium_core.spending.spending import Spending, SpendingLine
from trainium_runtime.errors import UnavailableError

HOURLY = Decimal("21.5") + (512 * Decimal("0.08") + 375 * Decimal("0.04")) / 730
"""USD per hour of a node of the default plan, with its volume and the volume's throughput above the baseline."""


def instance(name: str) -> Resource:
    item = ChargedItem(product="on-demand", quantity=Decimal(1), instance_type="trn1.32xlarge")
    return resource(name, cluster=CLUSTER, charge=Charge(items=(item,)))


def running(*names: str) -> FakeLister:
    return FakeLister(found=[instance(name) for name in names], kind="EC2 instance", arn_type="ec2:instance")


def spent(account: FakeSpendingAccount, *, ask: bool = True, **settings: Any) -> Spending:
    plan = from_settings(cluster_name=CLUSTER, **settings)
    return spending(plan, account, stack_names=(STACK_NAME,), now=NOW, ask_cost_explorer=ask)


def account(**answers: Any) -> FakeSpendingAccount:
    return FakeSpendingAccount(**{"stacks": [cluster_stack()], **answers})


def cents(usd: Decimal) -> Decimal:
    return round(usd, 2)


def test_nodes_cost_from_launch_to_termination_or_now() -> None:
    activities = [launched(FIRST, 10), terminated(FIRST, 6), launched(SECOND, 3)]
    costs = spent(account(activities=activities, lister=running(SECOND)))
    assert cents(costs.estimated_total.usd) == cents(7 * HOURLY)
    assert costs.estimated_total.unknown == 0


SIX_WEEKS = 24 * 42


def test_old_node_costs_since_its_launch_in_ec2() -> None:
    old = replace(instance(FIRST), created=NOW - timedelta(hours=2 * SIX_WEEKS))
    lister = FakeLister(found=[old], kind="EC2 instance", arn_type="ec2:instance")
    costs = spent(account(stacks=[cluster_stack(hours_ago=2 * SIX_WEEKS)], lister=lister))
    assert cents(costs.estimated_total.usd) == cents(2 * SIX_WEEKS * HOURLY)
    assert costs.estimated_total.unknown == 1  # Other nodes may have run then and ended.


def test_old_node_costs_once_for_several_groups() -> None:
    old = replace(instance(FIRST), created=NOW - timedelta(hours=5))
    lister = FakeLister(found=[old], kind="EC2 instance", arn_type="ec2:instance")
    stacks = [cluster_stack(), cluster_stack(deleted=NOW - timedelta(hours=9))]
    # The fake group has the same history for both stacks: an hour of SECOND for each.
    costs = spent(account(stacks=stacks, activities=[launched(SECOND, 10), terminated(SECOND, 9)], lister=lister))
    assert "7.00 node-hours" in costs.estimated[0].how


def test_unrecorded_launch_costs_from_the_start_of_the_history() -> None:
    costs = spent(account(stacks=[cluster_stack(hours_ago=2 * SIX_WEEKS)], activities=[terminated(FIRST, 2)]))
    assert cents(costs.estimated_total.usd) == cents((SIX_WEEKS - 2) * HOURLY)
    assert costs.estimated_total.unknown == 1


def test_slurm_node_costs_since_launch_and_ended_nodes_are_unknown() -> None:
    launched_at = NOW - timedelta(hours=2)
    login = ChargedItem(product="on-demand", quantity=Decimal(730), instance_type="m7i.large")
    resources = [
        replace(instance(FIRST), created=launched_at),
        replace(resource(SECOND, cluster=CLUSTER, charge=Charge(items=(login,))), created=launched_at),
    ]
    lister = FakeLister(found=resources, kind="EC2 instance", arn_type="ec2:instance")
    stack = replace(cluster_stack(), made={("AWS::PCS::ComputeNodeGroup", "arn"): "CREATE_COMPLETE"})
    costs = spent(account(stacks=[stack], lister=lister), stacks=("pcs",))
    nodes, *_, ended, login_line = costs.estimated
    assert "2.00 node-hours" in nodes.how
    assert (ended.what, ended.usd) == ("terminated nodes of TrnClusterStack", None)
    assert login_line.what == f"EC2 instance {SECOND}"


def test_failed_launch_costs_nothing() -> None:
    costs = spent(
        account(activities=[launched(FIRST, 10, succeeded=False), launched(SECOND, 1)], lister=running(SECOND))
    )
    assert cents(costs.estimated_total.usd) == cents(HOURLY)
    assert costs.estimated_total.unknown == 0


def test_node_of_a_deleted_stack_ran_until_the_deletion() -> None:
    stacks = [cluster_stack(deleted=NOW - timedelta(hours=4))]
    costs = spent(account(stacks=stacks, activities=[launched(FIRST, 10)]))
    assert cents(costs.estimated_total.usd) == cents(6 * HOURLY)


def test_nodes_in_a_reservation_cost_their_run_times() -> None:
    costs = spent(
        account(activities=[launched(FIRST, 3)], lister=running(FIRST)),
        capacity="reservation",
        reservation_id="cr-0123456789abcdef0",
    )
    assert cents(costs.estimated_total.usd) == cents(3 * HOURLY)


def test_capacity_block_is_listed_as_prepaid() -> None:
    costs = spent(account(), capacity="capacity-block", reservation_id="cr-0123456789abcdef0")
    line = SpendingLine(what="Capacity Block cr-0123456789abcdef0", usd=Decimal(0), how="prepaid, not included")
    assert line in costs.estimated


def test_node_without_termination_record_makes_total_a_lower_bound() -> None:
    costs = spent(account(activities=[launched(FIRST, 10), launched(SECOND, 1)], lister=running(SECOND)))
    assert cents(costs.estimated_total.usd) == cents(HOURLY)
    assert costs.estimated_total.unknown == 1


@pytest.mark.parametrize(
    "answers",
    [
        {"activities": (), "stacks": [cluster_stack(deleted=NOW)]},
        {"activities": (), "stacks": [cluster_stack(hours_ago=24 * 50)]},
        {"lister": FakeLister(found=None)},
    ],
    ids=["deleted group without history", "stack older than the history", "instances not readable"],
)
def test_unknown_run_times_make_the_total_incomplete(answers: dict[str, Any]) -> None:
    costs = spent(account(**answers))
    assert costs.estimated_total.unknown
    assert not costs.is_complete


def test_resource_costs_since_its_creation() -> None:
    endpoints = Charge(items=(ChargedItem(product="interface-endpoint", quantity=Decimal(200)),))
    endpoint = replace(resource("vpce-1", cluster=CLUSTER, charge=endpoints), created=NOW - timedelta(hours=5))
    costs = spent(account(lister=FakeLister(found=[endpoint], kind="VPC endpoint")))
    assert costs.estimated == (
        SpendingLine(what="VPC endpoint vpce-1", usd=Decimal(10), how="estimated: 5.00 h at today's price"),
    )


def test_volumes_of_nodes_cost_with_them_and_others_since_their_creation() -> None:
    disk = Charge(items=(ChargedItem(product="gp3-storage", quantity=Decimal(7300)),))
    volumes = [
        replace(resource(name, cluster=CLUSTER, parents=parents, charge=disk), created=NOW - timedelta(hours=5))
        for name, parents in (("vol-node", (FIRST,)), ("vol-login", (SECOND,)), ("vol-left", ()))
    ]
    costs = spent(account(activities=[launched(FIRST, 5)], lister=FakeLister(found=volumes)))
    lines = [line for line in costs.estimated if line.what.startswith("EBS volume vol-")]
    assert [line.what for line in lines] == ["EBS volume vol-login", "EBS volume vol-left"]
    assert {line.usd for line in lines} == {5 * 10 * Decimal("0.08")}


def test_cost_explorer_is_queried_once_from_the_first_deployment_to_today() -> None:
    billed = account(bill={"EC2": Decimal(12), "VPC": Decimal(1)})
    costs = spent(billed)
    assert billed.requests == [(CLUSTER, (NOW - timedelta(hours=10)).date(), NOW.date() + timedelta(days=1))]
    assert (costs.billed_total, costs.not_billed) == (13, "")


def test_cost_explorer_is_not_queried_without_request_or_stack() -> None:
    unwanted, unknown = account(), account(stacks=[])
    assert spent(unwanted, ask=False).not_billed == "not requested"
    assert "no stack" in spent(unknown).not_billed
    assert unwanted.requests == unknown.requests == []


@pytest.mark.parametrize(
    ("bill", "why"), [({}, "cost allocation tag"), ({"Tax": Decimal(0)}, "too early"), (None, "ce:GetCostAndUsage")]
)
def test_bill_without_amount_is_unknown_and_not_zero(bill: dict[str, Decimal] | None, why: str) -> None:
    costs = spent(account(bill=bill))
    assert costs.billed_total is None
    assert why in costs.not_billed


def test_forecast_extends_the_rate_to_the_end() -> None:
    costs = spent(account(activities=[launched(FIRST, 10)], lister=running(FIRST)), ends="40h")
    forecast = costs.forecast
    assert forecast is not None
    assert (forecast.ends, forecast.hours) == (NOW + timedelta(hours=30), 30)
    assert cents(forecast.total.usd) == cents(10 * HOURLY + 30 * Decimal("21.5"))


def test_forecast_ends_after_the_duration_from_the_start_of_the_capacity_block() -> None:
    block = replace(SCHEDULED_BLOCK, start=NOW + timedelta(days=10))
    settings = {"capacity": "capacity-block", "reservation_id": block.reservation_id}
    costs = spent(account(capacity=FakeCapacity(account_reservations=[block])), ends="40h", **settings)
    assert costs.forecast is not None
    assert costs.forecast.ends == NOW + timedelta(days=10, hours=40)


def test_unknown_start_of_the_capacity_block_leaves_out_the_forecast_alone() -> None:
    class Refusing(FakeCapacity):
        def reservation(self, reservation_id: str) -> Reservation | None:
            raise UnavailableError(f"not allowed to read {reservation_id}")

    settings = {"capacity": "capacity-block", "reservation_id": SCHEDULED_BLOCK.reservation_id}
    costs = spent(account(capacity=Refusing()), ends="40h", **settings)
    assert costs.forecast is None
    assert "when the pilot ends" in [part.what for part in costs.audit.not_read]


def test_forecast_starts_from_the_bill_if_higher() -> None:
    bill = {"EC2": Decimal(5000)}
    costs = spent(account(activities=[launched(FIRST, 10)], lister=running(FIRST), bill=bill), ends="40h")
    assert costs.forecast is not None
    assert cents(costs.forecast.total.usd) == 5000 + 30 * Decimal("21.5")


@pytest.fixture
def aws(made_up_credentials: None) -> AwsSpendingAccount:  # noqa: ARG001
    return AwsSpendingAccount("us-west-2")


def cost_explorer(aws: AwsSpendingAccount) -> Stubber:
    stub = Stubber(aws._clients.client("ce", COST_EXPLORER_REGION))
    stub.activate()
    return stub


def answer(*groups: tuple[str, str], unit: str = "USD", **more: Any) -> dict[str, Any]:
    rows = [{"Keys": [k], "Metrics": {"UnblendedCost": {"Amount": v, "Unit": unit}}} for k, v in groups]
    return {"ResultsByTime": [{"Groups": [group]} for group in rows], **more}


def billed(aws: AwsSpendingAccount) -> Any:
    return aws.billed(CLUSTER, NOW.date(), NOW.date() + timedelta(days=1))


def test_bill_is_queried_by_tag_and_summed_by_service(aws: AwsSpendingAccount) -> None:
    parameters = {
        "TimePeriod": {"Start": "2026-11-21", "End": "2026-11-22"},
        "Granularity": "MONTHLY",
        "Metrics": ["UnblendedCost"],
        "Filter": {"Tags": {"Key": "trn:cluster", "Values": [CLUSTER]}},
        "GroupBy": [{"Type": "DIMENSION", "Key": "SERVICE"}],
    }
    cost_explorer(aws).add_response(
        "get_cost_and_usage", answer(("EC2", "1.5"), ("EC2", "2"), ("VPC", "1")), parameters
    )
    assert billed(aws) == {"EC2": Decimal("3.5"), "VPC": Decimal(1)}


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (answer(("EC2", "1"), unit="EUR"), "amounts in EUR, not in USD"),
        (answer(("EC2", "1"), NextPageToken="more"), "several pages"),
    ],
)
def test_bill_in_another_currency_or_on_several_pages_is_unknown(
    aws: AwsSpendingAccount, message: dict[str, Any], says: str
) -> None:
    cost_explorer(aws).add_response("get_cost_and_usage", message)
    with pytest.raises(UnavailableError, match=says):
        billed(aws)


def test_activities_of_a_deleted_group_are_requested_too(aws: AwsSpendingAccount) -> None:
    stub = Stubber(aws.client("autoscaling"))
    stub.activate()
    began = datetime(2026, 11, 20, tzinfo=UTC)
    stored = {
        "ActivityId": "1",
        "AutoScalingGroupName": "g",
        "Cause": "x",
        "Description": "Launching",
        "StartTime": began,
        "StatusCode": "Successful",
    }
    parameters = {"AutoScalingGroupName": "g", "IncludeDeletedGroups": True}
    stub.add_response("describe_scaling_activities", {"Activities": [stored]}, parameters)
    (activity,) = aws.scaling_activities("g")
    assert (activity.description, activity.began, activity.succeeded) == ("Launching", began, True)
