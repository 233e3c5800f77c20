"""Capacity Blocks, reservations and spot placement scores: offered, bought, launched into, counted and refused."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.deploy.clock import MovableClock
from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import Network, clear, make_network
from trainium_core.catalog.catalog import builtin_catalog
from trainium_local.seeds.capacity_offers import offers
from trainium_local.server import Settings

BLOCK_REGION, BLOCK_TYPE = "ap-south-2", "trn2.48xlarge"
ZONE = "usw2-az4"


@pytest.fixture
def ec2(embedded_aws: EmbeddedAws) -> Any:
    return embedded_aws.client("ec2")


@pytest.fixture
def network(embedded_aws: EmbeddedAws) -> Iterator[Network]:
    made = make_network(embedded_aws, zone_id=ZONE)
    clear(made)
    yield made
    clear(made)


def offered(embedded_aws: EmbeddedAws, **changed: Any) -> list[dict[str, Any]]:
    wanted = {"InstanceType": BLOCK_TYPE, "InstanceCount": 2, "CapacityDurationHours": 48} | changed
    return embedded_aws.client("ec2", BLOCK_REGION).describe_capacity_block_offerings(**wanted)[
        "CapacityBlockOfferings"
    ]


def buy(embedded_aws: EmbeddedAws, offering: dict[str, Any]) -> dict[str, Any]:
    return embedded_aws.client("ec2", BLOCK_REGION).purchase_capacity_block(
        CapacityBlockOfferingId=offering["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
    )["CapacityReservation"]


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return error.value.response["Error"]["Code"]


def test_block_costs_sourced_price_per_instance_and_hour(embedded_aws: EmbeddedAws) -> None:
    offering = offered(embedded_aws)[-1]
    assert offering["UpfrontFee"] == "3432.96"
    assert offering["EndDate"] - offering["StartDate"] == timedelta(hours=48)
    assert f"{offering['EndDate']:%H:%M}" == "11:30"


def test_offerings_have_unique_ids_that_stay_the_same() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def ids(now: datetime) -> list[str]:
        return [
            offer.offering_id
            for count, hours in product((1, 2), (24, 48))
            for offer in offers(region=BLOCK_REGION, instance_type=BLOCK_TYPE, instances=count, hours=hours, now=now)
        ]

    assert len(set(ids(now))) == len(ids(now))
    assert ids(now) == ids(now + timedelta(hours=1))


def test_latest_end_and_count_restrict_offerings(embedded_aws: EmbeddedAws) -> None:
    assert offered(embedded_aws, EndDateRange=datetime.now(UTC) + timedelta(hours=1)) == []
    assert offered(embedded_aws, EndDateRange=datetime.now(UTC) + timedelta(days=60))
    assert offered(embedded_aws, InstanceCount=64) == []


@pytest.mark.parametrize("instance_type", ["trn2u.48xlarge", "trn2.3xlarge", "trn1.2xlarge"])
def test_type_not_sold_in_blocks_of_the_region_is_refused(embedded_aws: EmbeddedAws, instance_type: str) -> None:
    with pytest.raises(ClientError, match="is not supported for Capacity Blocks in 'ap-south-2'"):
        offered(embedded_aws, InstanceType=instance_type)


def test_bought_block_is_no_longer_offered(embedded_aws: EmbeddedAws) -> None:
    offering = offered(embedded_aws, InstanceCount=3)[0]
    buy(embedded_aws, offering)
    ids = [other["CapacityBlockOfferingId"] for other in offered(embedded_aws, InstanceCount=3)]
    assert offering["CapacityBlockOfferingId"] not in ids
    with pytest.raises(ClientError):
        buy(embedded_aws, offering)


def test_future_block_has_no_capacity_and_its_size_in_a_tag(embedded_aws: EmbeddedAws) -> None:
    bought = buy(embedded_aws, offered(embedded_aws, InstanceCount=4)[-1])
    assert (bought["State"], bought["ReservationType"]) == ("scheduled", "capacity-block")
    assert (bought["TotalInstanceCount"], bought["AvailableInstanceCount"]) == (0, 0)
    tags = {tag["Key"]: tag["Value"] for tag in bought["Tags"]}
    assert tags["aws:ec2capacityreservation:incrementalRequestedQuantity"] == "4"


def test_future_block_has_a_creation_date_before_its_start(embedded_aws: EmbeddedAws) -> None:
    bought = buy(embedded_aws, offered(embedded_aws, InstanceCount=6)[-1])
    assert bought["CreateDate"] < bought["StartDate"]


def test_block_is_listed_as_reservation_and_not_cancelled(embedded_aws: EmbeddedAws) -> None:
    client = embedded_aws.client("ec2", BLOCK_REGION)
    bought = buy(embedded_aws, offered(embedded_aws, InstanceCount=5)[0])
    filters = [{"Name": "instance-type", "Values": [BLOCK_TYPE]}, {"Name": "state", "Values": ["active"]}]
    found = client.describe_capacity_reservations(Filters=filters)["CapacityReservations"]
    assert bought["CapacityReservationId"] in [entry["CapacityReservationId"] for entry in found]
    with pytest.raises(ClientError):
        client.cancel_capacity_reservation(CapacityReservationId=bought["CapacityReservationId"])


def reserve(ec2: Any, count: int = 1, **more: Any) -> str:
    wanted = {"InstanceType": "trn1.32xlarge", "InstancePlatform": "Linux/UNIX", "AvailabilityZoneId": ZONE}
    made = ec2.create_capacity_reservation(**wanted | more, InstanceCount=count)
    return made["CapacityReservation"]["CapacityReservationId"]


def shown(ec2: Any, reservation_id: str) -> dict[str, Any]:
    return ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"][0]


def into(reservation_id: str, market: str | None = None) -> dict[str, Any]:
    """The settings of a launch template that launches into a reservation."""
    target = {
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}}
    }
    return target | ({"InstanceMarketOptions": {"MarketType": market}} if market else {})


def template(network: Network, **data: Any) -> str:
    return network.template(f"t-{uuid.uuid4().hex[:8]}", **data)


def test_reservation_has_its_zone_by_id_and_name(ec2: Any) -> None:
    entry = shown(ec2, reserve(ec2, 2))
    assert (entry["AvailabilityZoneId"], entry["State"], entry["EndDateType"]) == (ZONE, "active", "unlimited")
    by_name = reserve(ec2, AvailabilityZone=entry["AvailabilityZone"], AvailabilityZoneId=ZONE)
    assert shown(ec2, by_name)["AvailabilityZoneId"] == ZONE


def test_cancelled_reservation_launches_nothing(ec2: Any, network: Network) -> None:
    reservation_id = reserve(ec2)
    ec2.cancel_capacity_reservation(CapacityReservationId=reservation_id)
    assert (shown(ec2, reservation_id)["State"], shown(ec2, reservation_id)["AvailableInstanceCount"]) == (
        "cancelled",
        0,
    )
    with pytest.raises(ClientError) as error:
        network.run(template(network, **into(reservation_id)))
    assert code_of(error) == "InvalidCapacityReservationState"


def test_reservation_expires_at_its_end(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> None:
    aws = start_embedded_aws(Settings())
    ec2 = aws.client("ec2")
    reservation_id = reserve(ec2, EndDateType="limited", EndDate=datetime.now(UTC) + timedelta(hours=2))
    assert shown(ec2, reservation_id)["State"] == "active"
    MovableClock(connection=aws.connection).forward(hours=3)
    assert shown(ec2, reservation_id)["State"] == "expired"


def test_launch_uses_reservation_and_termination_frees_it(ec2: Any, network: Network) -> None:
    reservation_id = reserve(ec2, 2)
    (instance,) = network.run(template(network, **into(reservation_id)))
    assert shown(ec2, reservation_id)["AvailableInstanceCount"] == 1
    assert network.instance(instance["InstanceId"])["CapacityReservationId"] == reservation_id
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert shown(ec2, reservation_id)["AvailableInstanceCount"] == 2


@pytest.mark.parametrize(
    ("reserved", "market", "code"),
    [
        ({"AvailabilityZoneId": "usw2-az1"}, None, "ReservationCapacityExceeded"),
        ({}, "capacity-block", "InvalidParameterCombination"),
    ],
)
def test_unsuitable_reservation_refuses_the_launch(
    ec2: Any, network: Network, reserved: dict[str, str], market: str | None, code: str
) -> None:
    with pytest.raises(ClientError) as error:
        network.run(template(network, **into(reserve(ec2, **reserved), market)))
    assert code_of(error) == code


def test_full_reservation_is_a_failed_scaling_activity(ec2: Any, network: Network) -> None:
    name = f"g-{uuid.uuid4().hex[:8]}"
    group = network.create_group(name, template(network, **into(reserve(ec2, 1))), nodes=2)
    assert len(group["Instances"]) == 1
    activities = network.autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]
    failed = [activity["StatusMessage"] for activity in activities if activity["StatusCode"] == "Failed"]
    assert "does not have sufficient compatible and available capacity" in failed[0]


def test_active_block_can_be_launched_into(embedded_aws: EmbeddedAws) -> None:
    bought = buy(embedded_aws, offered(embedded_aws, InstanceCount=1)[0])
    images = embedded_aws.client("ec2", BLOCK_REGION).describe_images(Owners=["amazon"])["Images"]
    image = next(
        one["ImageId"] for one in images if one.get("Platform") != "windows" and one["Architecture"] == "x86_64"
    )
    network = _network_in_the_block(embedded_aws, image)
    block = into(bought["CapacityReservationId"], "capacity-block")
    (instance,) = network.run(template(network, instance_type=BLOCK_TYPE, **block))
    assert instance["InstanceLifecycle"] == "capacity-block"
    assert shown(network.ec2, bought["CapacityReservationId"])["AvailableInstanceCount"] == 0
    clear(network)


def _network_in_the_block(aws: EmbeddedAws, image: str) -> Network:
    """A network in the block's region, which has no parameters for Neuron images."""

    class Elsewhere:
        def client(self, service: str) -> Any:
            return aws.client(service, "us-west-2" if service == "ssm" else BLOCK_REGION)

    return replace(make_network(Elsewhere(), zone_id="aps2-az2"), image=image)


@pytest.mark.parametrize("region", builtin_catalog().regions)
def test_every_zone_that_offers_a_type_has_a_spot_score(embedded_aws: EmbeddedAws, region: str) -> None:
    for entry in builtin_catalog().values():
        scores = embedded_aws.client("ec2", region).get_spot_placement_scores(
            InstanceTypes=[entry.name], TargetCapacity=1, SingleAvailabilityZone=True, RegionNames=[region]
        )["SpotPlacementScores"]
        assert {score["AvailabilityZoneId"] for score in scores} == set(entry.zones.get(region, ()))
        assert all(1 <= score["Score"] <= 10 for score in scores)


def test_spot_score_of_region_is_that_of_its_best_zone(ec2: Any) -> None:
    def scores(*, by_zone: bool) -> list[dict[str, Any]]:
        return ec2.get_spot_placement_scores(
            InstanceTypes=["trn1.32xlarge"],
            TargetCapacity=1,
            SingleAvailabilityZone=by_zone,
            RegionNames=["us-west-2"],
        )["SpotPlacementScores"]

    (score,) = scores(by_zone=False)
    assert score["Region"] == "us-west-2"
    assert score["Score"] == max(zone["Score"] for zone in scores(by_zone=True))
