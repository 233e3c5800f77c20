"""What is asked about capacity, and what becomes of the answers: botocore's Stubber holds both against AWS's models."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from botocore.stub import Stubber

from trainium_core.capacity.aws_capacity import AwsCapacity
from trainium_core.capacity.offerings import BlockOffering, Reservation
from trainium_runtime.errors import UnavailableError

REGION = "us-west-2"
TYPE = "trn2.48xlarge"
START, END = datetime(2026, 11, 22, 11, 30, tzinfo=UTC), datetime(2026, 11, 24, 11, 30, tzinfo=UTC)
ID = "cr-0123456789abcdef0"

OFFERED: dict[str, Any] = {
    "CapacityBlockOfferingId": "cb-0123456789abcdef0",
    "InstanceType": TYPE,
    "AvailabilityZone": "us-west-2b",
    "InstanceCount": 2,
    "StartDate": START,
    "EndDate": END,
    "CapacityBlockDurationHours": 48,
    "UpfrontFee": "3432.96",
    "CurrencyCode": "USD",
}
RESERVED: dict[str, Any] = {
    "CapacityReservationId": ID,
    "State": "active",
    "InstanceType": TYPE,
    "InstancePlatform": "Linux/UNIX",
    "Tenancy": "default",
    "AvailabilityZoneId": "usw2-az1",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 3,
    "StartDate": START,
}
REQUEST = {"InstanceType": TYPE, "InstanceCount": 2, "CapacityDurationHours": 48}
ZONES = {
    "AvailabilityZones": [
        {"ZoneName": "us-west-2a", "ZoneId": "usw2-az2"},
        {"ZoneName": "us-west-2b", "ZoneId": "usw2-az1"},
    ]
}


@pytest.fixture(scope="module")
def account() -> Iterator[AwsCapacity]:
    """One for all tests: a client takes longer to make than to use."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
            environment.delenv(name, raising=False)
        environment.setenv("AWS_ACCESS_KEY_ID", "nobody")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        parameters = AwsCapacity(REGION)
        parameters.client("ec2")
        yield parameters


@pytest.fixture
def ec2(account: AwsCapacity) -> Iterator[Stubber]:
    """A call that no test wrote fails, and so does one that was written and not made."""
    with Stubber(account.client("ec2")) as stub:
        yield stub
        stub.assert_no_pending_responses()


def offerings(account: AwsCapacity) -> Any:
    return account.block_offerings(instance_type=TYPE, instances=2, hours=48)


def scores(account: AwsCapacity) -> Any:
    return account.spot_placement_scores(instance_type=TYPE, instances=2)


QUESTIONS: list[tuple[str, str, Callable[[AwsCapacity], Any]]] = [
    ("describe_capacity_block_offerings", "ec2:DescribeCapacityBlockOfferings", offerings),
    ("get_spot_placement_scores", "ec2:GetSpotPlacementScores", scores),
    ("describe_capacity_reservations", "ec2:DescribeCapacityReservations", lambda a: a.reservations(TYPE)),
    ("describe_capacity_reservations", "ec2:DescribeCapacityReservations", lambda a: a.reservation(ID)),
    ("describe_instances", "ec2:DescribeInstances", lambda a: a.instances_in_reservation(ID, cluster="mine")),
]


def test_an_offering_has_its_zone_by_id(account: AwsCapacity, ec2: Stubber) -> None:
    ec2.add_response("describe_capacity_block_offerings", {"CapacityBlockOfferings": [OFFERED]}, REQUEST)
    ec2.add_response("describe_availability_zones", ZONES)
    assert offerings(account) == [
        BlockOffering(
            offering_id="cb-0123456789abcdef0",
            instance_type=TYPE,
            instances=2,
            zone_id="usw2-az1",
            start=START,
            end=END,
            upfront_fee=Decimal("3432.96"),
            currency="USD",
        )
    ]


def test_a_type_that_is_not_sold_in_blocks_is_none(account: AwsCapacity, ec2: Stubber) -> None:
    message = f"The instance type '{TYPE}' is not supported for Capacity Blocks in 'us-west-2'."
    ec2.add_client_error("describe_capacity_block_offerings", "InvalidParameterValue", message)
    assert offerings(account) is None


@pytest.mark.parametrize(
    ("code", "message", "text"),
    [
        (
            "UnauthorizedOperation",
            "This AWS Account is not authorized to call DescribeCapacityBlockOfferings API when requesting an EC2 "
            "UltraServer",
            "this account may not search for them: ask AWS Support",
        ),
        ("InvalidParameterValue", "Something else", "AWS answered InvalidParameterValue: Something else"),
    ],
)
def test_what_aws_refuses_about_blocks_is_reported_in_plain_words(
    account: AwsCapacity, ec2: Stubber, code: str, message: str, text: str
) -> None:
    ec2.add_client_error("describe_capacity_block_offerings", code, message)
    with pytest.raises(UnavailableError, match=text):
        offerings(account)


def test_reservations_are_those_of_the_type_that_launch_now_or_later(account: AwsCapacity, ec2: Stubber) -> None:
    filters = [
        {"Name": "instance-type", "Values": [TYPE]},
        {"Name": "state", "Values": ["active", "scheduled"]},
    ]
    page = {"CapacityReservations": [RESERVED], "NextToken": "more"}
    ec2.add_response("describe_capacity_reservations", page, {"Filters": filters})
    ec2.add_response(
        "describe_capacity_reservations",
        {"CapacityReservations": [RESERVED]},
        {"Filters": filters, "NextToken": "more"},
    )
    assert [found.reservation_id for found in account.reservations(TYPE)] == [ID, ID]


def reservation(account: AwsCapacity, ec2: Stubber, **changed: Any) -> Reservation:
    answer = {"CapacityReservations": [{**RESERVED, **changed}]}
    ec2.add_response("describe_capacity_reservations", answer, {"CapacityReservationIds": [ID]})
    found = account.reservation(ID)
    assert found is not None
    return found


def test_a_reservation_is_reported_with_what_is_left_of_it(account: AwsCapacity, ec2: Stubber) -> None:
    assert reservation(account, ec2) == Reservation(
        reservation_id=ID,
        capacity="reservation",
        state="active",
        instance_type=TYPE,
        platform="Linux/UNIX",
        tenancy="default",
        zone_id="usw2-az1",
        total=4,
        available=3,
        start=START,
    )


def test_a_block_is_distinguished_with_its_end(account: AwsCapacity, ec2: Stubber) -> None:
    found = reservation(account, ec2, ReservationType="capacity-block", EndDate=END)
    assert (found.capacity, found.end) == ("capacity-block", END)


def test_the_size_of_a_block_that_has_not_begun_is_in_its_tag(account: AwsCapacity, ec2: Stubber) -> None:
    tag = {"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "2"}
    found = reservation(account, ec2, State="scheduled", TotalInstanceCount=0, AvailableInstanceCount=0, Tags=[tag])
    assert (found.total, found.available, found.launchable) == (2, 0, 2)


@pytest.mark.parametrize("code", ["InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"])
def test_a_reservation_that_is_not_there_is_none(account: AwsCapacity, ec2: Stubber, code: str) -> None:
    ec2.add_client_error("describe_capacity_reservations", code)
    assert account.reservation(ID) is None


def test_nodes_in_a_reservation_are_those_of_the_cluster_that_run_in_this_one(
    account: AwsCapacity, ec2: Stubber
) -> None:
    filters = [
        {"Name": "tag:trn:cluster", "Values": ["mine"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    instances: list[dict[str, Any]] = [{"CapacityReservationId": ID}, {"CapacityReservationId": "cr-1"}, {}]
    ec2.add_response("describe_instances", {"Reservations": [{"Instances": instances}]}, {"Filters": filters})
    assert account.instances_in_reservation(ID, cluster="mine") == 1


@pytest.mark.parametrize(("operation", "permission", "query"), QUESTIONS)
def test_a_denied_question_names_the_permission(
    account: AwsCapacity, ec2: Stubber, operation: str, permission: str, query: Callable[[AwsCapacity], Any]
) -> None:
    ec2.add_client_error(operation, "UnauthorizedOperation", "You are not authorized")
    with pytest.raises(UnavailableError, match=f"the permission {permission} is missing"):
        query(account)
