"""Capacity Reservations of EC2, which moto lacks, and launches into them.

The running instances of a reservation determine its available capacity.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.utils import convert_tag_spec
from moto.moto_api._internal import mock_random

from trainium_local import clock
from trainium_local.services.errors import refusal
from trainium_local.services.expressions import refusals
from trainium_local.services.filters import matches
from trainium_local.services.launch_request import RULES, LaunchRequest
from trainium_local.services.placement_groups import placement_groups

CAPACITY_BLOCK = "capacity-block"
RUNNING = ("pending", "running")
SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"

Reservation = dict[str, Any]


def reservations(backend: Any) -> dict[str, Reservation]:
    """Return the reservations of a region by ID, as EC2 describes them, without the values that `shown` adds."""
    return vars(backend).setdefault("capacity_reservations", {})


def reserve(response: Any, zone: Any, **more: Any) -> Reservation:
    """Create a reservation in a zone, with the tags of the request. Values in `more` override defaults unless None."""
    backend, reservation_id = response.ec2_backend, "cr-" + mock_random.get_random_hex(17)
    tags = convert_tag_spec(response._get_param("TagSpecifications", []) or []).get("capacity-reservation", {})
    values = {name: value for name, value in more.items() if value is not None}
    now = clock.now()
    reservation = {
        "CapacityReservationId": reservation_id,
        "CapacityReservationArn": (
            f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:capacity-reservation/{reservation_id}"
        ),
        "OwnerId": backend.account_id,
        "AvailabilityZone": zone.name,
        "AvailabilityZoneId": zone.zone_id,
        "InstancePlatform": response._get_param("InstancePlatform"),
        "Tenancy": "default",
        "InstanceMatchCriteria": "open",
        "ReservationType": "default",
        "EbsOptimized": False,
        "EphemeralStorage": False,
        "CreateDate": now,
        "StartDate": now,
        "EndDateType": "limited" if "EndDate" in values else "unlimited",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        **values,
    }
    reservations(backend)[reservation_id] = reservation
    return reservation


def existing(backend: Any, reservation_id: str) -> Reservation:
    """Return a reservation.

    Raises:
        Refused: AWS's InvalidCapacityReservationId.NotFound.
    """
    reservation = reservations(backend).get(reservation_id)
    if reservation is None:
        raise refusal("reservation-unknown", reservation=reservation_id)
    return reservation


def zone_in(backend: Any, *, name: str | None = None, zone_id: str | None = None) -> Any:
    """Return the zone with this name or ID.

    Raises:
        Refused: AWS's InvalidParameterValue.
    """
    for zone in backend.describe_availability_zones():
        if zone_id == zone.zone_id or (zone_id is None and name == zone.name):
            return zone
    raise refusal("zone-unknown", zone=zone_id or name)


_empty_zone_ids = set[str]()


def empty_zones(zone_ids: Iterable[str]) -> None:
    """Let launches without a reservation fail in these zones until this process ends."""
    _empty_zone_ids.clear()
    _empty_zone_ids.update(zone_ids)


def refuse_without_room(backend: Any, request: LaunchRequest) -> None:
    """Raise EC2's error if the zone of a launch has no capacity, or if the reservation that it targets does not exist,
    does not match, or is full."""
    zone = backend.get_subnet(request.subnet_id).availability_zone if request.subnet_id else request.zone
    if not request.reservation_id:
        if zone and zone_in(backend, name=zone).zone_id in _empty_zone_ids:
            raise refusal("capacity-missing", type=request.instance_type, zone=zone)
        return
    reserved = existing(backend, request.reservation_id)
    fits = (
        reserved["InstanceType"] == request.instance_type
        and reserved["AvailabilityZone"] == zone
        and (reserved["ReservationType"] == CAPACITY_BLOCK) == (request.market == CAPACITY_BLOCK)
    )
    if not fits or shown(backend, reserved)["AvailableInstanceCount"] < request.count:
        raise refusal("reservation-full")


def create_capacity_reservation(response: Any) -> ActionResult:
    backend, instance_type = response.ec2_backend, response._get_param("InstanceType")
    if instance_type not in INSTANCE_TYPES:
        raise refusal("instance-type-unknown", type=instance_type)
    values = {
        name: response._get_param(name) for name in ("InstanceCount", "EndDateType", "EndDate", "PlacementGroupArn")
    }
    end = moment(values["EndDate"])
    groups = placement_groups(backend).values()
    strategies = {group["GroupArn"]: group["Strategy"] for group in groups}
    strategy = strategies.get(values["PlacementGroupArn"])
    for refused in refusals(
        RULES["reservation"], {**values, "past": bool(end and end <= clock.now()), "strategy": strategy}
    ):
        raise refused
    zone = zone_in(
        backend, name=response._get_param("AvailabilityZone"), zone_id=response._get_param("AvailabilityZoneId")
    )
    reserved = reserve(
        response,
        zone,
        InstanceType=instance_type,
        TotalInstanceCount=int(response._get_param("InstanceCount")),
        Tenancy=response._get_param("Tenancy"),
        InstanceMatchCriteria=response._get_param("InstanceMatchCriteria"),
        EndDate=moment(response._get_param("EndDate")),
        PlacementGroupArn=response._get_param("PlacementGroupArn"),
    )
    return ActionResult({"CapacityReservation": shown(backend, reserved)})


def cancel_capacity_reservation(response: Any) -> ActionResult:
    reserved = existing(response.ec2_backend, response._get_param("CapacityReservationId"))
    if reserved["ReservationType"] == CAPACITY_BLOCK:
        raise refusal("capacity-block-cancelled")
    reserved["State"] = "cancelled"
    return ActionResult({"Return": True})


def describe_capacity_reservations(response: Any) -> ActionResult:
    backend, filters = response.ec2_backend, response._filters_from_querystring()
    ids = response._get_param("CapacityReservationIds", []) or []
    selected = [existing(backend, name) for name in ids] or list(reservations(backend).values())
    described = [shown(backend, reserved) for reserved in selected]
    return ActionResult({"CapacityReservations": [entry for entry in described if matches(entry, filters)]})


def reservation_state(reserved: Reservation) -> str:
    """Return `cancelled`, or the state at the current time."""
    now = clock.now()
    if "EndDate" in reserved and reserved["EndDate"] <= now:
        by_clock = "expired"
    else:
        by_clock = "scheduled" if reserved["StartDate"] > now else "active"
    return reserved.get("State", by_clock)


def shown(backend: Any, reserved: Reservation) -> Reservation:
    """Return a reservation as DescribeCapacityReservations does."""
    state, size = reservation_state(reserved), reserved["TotalInstanceCount"]
    if state == "scheduled":
        # According to the EC2 documentation, a block has no capacity before it starts; a tag contains its size.
        tags = [*reserved["Tags"], {"Key": SIZE_TAG, "Value": str(size)}]
        return {**reserved, "State": state, "TotalInstanceCount": 0, "AvailableInstanceCount": 0, "Tags": tags}
    running = sum(
        vars(instance).get("capacity_reservation_id") == reserved["CapacityReservationId"] and instance.state in RUNNING
        for instance in backend.all_instances()
    )
    return {**reserved, "State": state, "AvailableInstanceCount": max(0, size - running) if state == "active" else 0}


def moment(timestamp: datetime | str | None) -> datetime | None:
    """Return a timestamp of a request. Without a time zone it is in UTC."""
    if not timestamp:
        return None
    parsed = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
