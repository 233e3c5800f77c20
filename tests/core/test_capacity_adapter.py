"""Calls about capacity and their results: botocore's Stubber validates both against AWS's models."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.core.aws_stubs import stubbed
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.capacity import BlockOffering, ExtensionOffering, Reservation
from trainium_runtime.errors import UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

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
REQUEST = {"InstanceType": TYPE, "InstanceCount": 2, "CapacityDurationHours": 48, "EndDateRange": END}


def offerings(account: AwsAccount) -> Any:
    return account.capacity.block_offerings(instance_type=TYPE, instances=2, hours=48, latest_end=END)


def scores(account: AwsAccount) -> Any:
    return account.capacity.spot_placement_scores(instance_type=TYPE, instances=2)


def test_offerings_of_all_pages_have_their_zone_id() -> None:
    account, ec2 = stubbed("ec2")
    page, search = {"CapacityBlockOfferings": [OFFERED]}, "describe_capacity_block_offerings"
    ec2.add_response(search, {**page, "NextToken": "more"}, REQUEST)
    ec2.add_response(search, page, {**REQUEST, "NextToken": "more"})
    zones = [{"ZoneName": "us-west-2a", "ZoneId": "usw2-az2"}, {"ZoneName": "us-west-2b", "ZoneId": "usw2-az1"}]
    ec2.add_response("describe_availability_zones", {"AvailabilityZones": zones})
    expected = BlockOffering(
        offering_id="cb-0123456789abcdef0",
        instance_type=TYPE,
        instances=2,
        zone_id="usw2-az1",
        start=START,
        end=END,
        upfront_fee=Decimal("3432.96"),
        currency="USD",
    )
    assert offerings(account) == [expected, expected]


def test_type_not_sold_in_blocks_is_none() -> None:
    account, ec2 = stubbed("ec2")
    message = f"The instance type '{TYPE}' is not supported for Capacity Blocks in 'us-west-2'."
    ec2.add_client_error("describe_capacity_block_offerings", "InvalidParameterValue", message)
    assert offerings(account) is None


@pytest.mark.parametrize(
    ("code", "message", "says"),
    [
        ("InvalidParameterValue", "Something else", "AWS answered InvalidParameterValue: Something else"),
        (
            "UnauthorizedOperation",
            "authorized to call DescribeCapacityBlockOfferings API when requesting an EC2 UltraServer",
            "this account may not search for them: ask AWS",
        ),
        ("UnauthorizedOperation", "You are not authorized", "permission ec2:DescribeCapacityBlockOfferings is missing"),
    ],
)
def test_refused_search_for_blocks_is_unknown_with_the_reason(code: str, message: str, says: str) -> None:
    account, ec2 = stubbed("ec2")
    ec2.add_client_error("describe_capacity_block_offerings", code, message)
    with pytest.raises(UnavailableError, match=says):
        offerings(account)


def extensions(account: AwsAccount) -> Any:
    return account.capacity.extension_offerings(ID, hours=24)


def test_extensions_of_all_pages_have_new_end_and_price() -> None:
    account, ec2 = stubbed("ec2")
    offered = {
        "CapacityBlockExtensionOfferingId": "cbe-0123456789abcdef0",
        "CapacityBlockExtensionStartDate": START,
        "CapacityBlockExtensionEndDate": END,
        "CapacityBlockExtensionDurationHours": 48,
        "UpfrontFee": "1716.48",
        "CurrencyCode": "USD",
    }
    page, search = {"CapacityBlockExtensionOfferings": [offered]}, "describe_capacity_block_extension_offerings"
    request = {"CapacityReservationId": ID, "CapacityBlockExtensionDurationHours": 24}
    ec2.add_response(search, {**page, "NextToken": "more"}, request)
    ec2.add_response(search, page, {**request, "NextToken": "more"})
    expected = ExtensionOffering(
        offering_id="cbe-0123456789abcdef0", start=START, end=END, upfront_fee=Decimal("1716.48"), currency="USD"
    )
    assert extensions(account) == [expected, expected]


def test_spot_scores_are_those_of_zones_in_the_region() -> None:
    account, ec2 = stubbed("ec2")
    where = {"SingleAvailabilityZone": True, "RegionNames": ["us-west-2"]}
    answer = {"SpotPlacementScores": [{"Region": "us-west-2", "AvailabilityZoneId": "usw2-az1", "Score": 9}]}
    ec2.add_response("get_spot_placement_scores", answer, {"InstanceTypes": [TYPE], "TargetCapacity": 2, **where})
    assert scores(account) == {"usw2-az1": 9}


def test_reservations_are_active_or_scheduled_ones_of_the_type() -> None:
    account, ec2 = stubbed("ec2")
    filters = [{"Name": "instance-type", "Values": [TYPE]}, {"Name": "state", "Values": ["active", "scheduled"]}]
    page = {"CapacityReservations": [RESERVED]}
    ec2.add_response("describe_capacity_reservations", {**page, "NextToken": "more"}, {"Filters": filters})
    ec2.add_response("describe_capacity_reservations", page, {"Filters": filters, "NextToken": "more"})
    assert [found.reservation_id for found in account.capacity.reservations(TYPE)] == [ID, ID]


def reservation(**changed: Any) -> Reservation:
    account, ec2 = stubbed("ec2")
    answer = {"CapacityReservations": [{**RESERVED, **changed}]}
    ec2.add_response("describe_capacity_reservations", answer, {"CapacityReservationIds": [ID]})
    found = account.capacity.reservation(ID)
    assert found is not None
    return found


def test_reservation_has_its_remaining_capacity() -> None:
    assert reservation() == Reservation(
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


def test_scheduled_block_has_its_size_from_a_tag() -> None:
    tag = {"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "2"}
    none_yet = {"State": "scheduled", "TotalInstanceCount": 0, "AvailableInstanceCount": 0, "Tags": [tag]}
    found = reservation(ReservationType="capacity-block", EndDate=END, **none_yet)
    assert (found.capacity, found.end) == ("capacity-block", END)
    assert (found.total, found.available, found.launchable) == (2, 0, 2)


@pytest.mark.parametrize("code", ["InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"])
def test_missing_reservation_is_none(code: str) -> None:
    account, ec2 = stubbed("ec2")
    ec2.add_client_error("describe_capacity_reservations", code)
    assert account.capacity.reservation(ID) is None


def test_nodes_in_reservation_are_those_of_the_cluster() -> None:
    account, ec2 = stubbed("ec2")
    filters = [
        {"Name": "tag:trn:cluster", "Values": ["mine"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    instances: list[dict[str, Any]] = [{"CapacityReservationId": ID}, {"CapacityReservationId": "cr-1"}, {}]
    ec2.add_response("describe_instances", {"Reservations": [{"Instances": instances}]}, {"Filters": filters})
    assert account.capacity.instances_in_reservation(ID, cluster="mine") == 1


@pytest.mark.parametrize(
    ("operation", "permission", "query"),
    [
        ("get_spot_placement_scores", "ec2:GetSpotPlacementScores", scores),
        (
            "describe_capacity_block_extension_offerings",
            "ec2:DescribeCapacityBlockExtensionOfferings",
            extensions,
        ),
        ("describe_capacity_reservations", "ec2:DescribeCapacityReservations", lambda a: a.capacity.reservations(TYPE)),
    ],
)
def test_denied_call_names_the_permission(operation: str, permission: str, query: Callable[[AwsAccount], Any]) -> None:
    account, ec2 = stubbed("ec2")
    ec2.add_client_error(operation, "UnauthorizedOperation", "You are not authorized")
    with pytest.raises(UnavailableError, match=f"the permission {permission} is missing"):
        query(account)
