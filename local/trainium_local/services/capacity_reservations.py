"""Capacity Reservations of EC2, which moto lacks, and the launches into them.

The reservations of a region live on its EC2 backend, so that they go when the backend is reset. How many instances are
left in one is counted from those that run in it.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.utils import convert_tag_spec
from moto.moto_api._internal import mock_random

from trainium_local import clock
from trainium_local.services.errors import Refused
from trainium_local.services.launch_request import LaunchRequest

DEFAULT, CAPACITY_BLOCK = "default", "capacity-block"
RUNNING = ("pending", "running")
SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"


@dataclass(kw_only=True)
class Reserved:
    """A reservation. `kind` is EC2's ReservationType, `zone` the name of its zone."""

    reservation_id: str = field(default_factory=lambda: "cr-" + mock_random.get_random_hex(17))
    kind: str = DEFAULT
    instance_type: str
    instances: int
    platform: str
    tenancy: str = "default"
    match_criteria: str = "open"
    zone: str
    zone_id: str
    start: datetime
    end: datetime | None = None
    block_id: str | None = None
    placement_group_arn: str | None = None
    tags: dict[str, str] = field(default_factory=dict[str, str])
    cancelled: bool = False

    def state(self, now: datetime) -> str:
        if self.cancelled:
            return "cancelled"
        if self.end is not None and self.end <= now:
            return "expired"
        return "scheduled" if self.start > now else "active"


def reservations(backend: Any) -> dict[str, Reserved]:
    """The reservations of one region, by id."""
    return vars(backend).setdefault("capacity_reservations", {})


def existing(backend: Any, reservation_id: str) -> Reserved:
    """Raises AWS's InvalidCapacityReservationId.NotFound."""
    found = reservations(backend).get(reservation_id)
    if found is None:
        raise Refused(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{reservation_id}' does not exist."
        )
    return found


def zone_in(backend: Any, *, name: str | None = None, zone_id: str | None = None) -> Any:
    """The zone of the region with that name or id. Raises AWS's InvalidParameterValue."""
    for zone in backend.describe_availability_zones():
        if zone_id == zone.zone_id or (zone_id is None and name == zone.name):
            return zone
    raise Refused("InvalidParameterValue", f"Value ({zone_id or name}) for parameter availabilityZone is invalid.")


def refuse_without_room(backend: Any, request: LaunchRequest) -> None:
    """Raise what EC2 answers when the reservation that a launch targets is not there, does not fit, or is full."""
    if not request.reservation_id:
        return
    reserved = existing(backend, request.reservation_id)
    zone = backend.get_subnet(request.subnet_id).availability_zone if request.subnet_id else request.zone
    fits = (
        reserved.instance_type == request.instance_type
        and reserved.zone == zone
        and (reserved.kind == CAPACITY_BLOCK) == (request.market == CAPACITY_BLOCK)
    )
    if not fits or _left(backend, reserved) < request.count:
        raise Refused(
            "ReservationCapacityExceeded",
            "The requested reservation does not have sufficient compatible and available capacity for this request.",
        )


def create_capacity_reservation(response: Any) -> ActionResult:
    backend, instance_type = backend_of(response), response._get_param("InstanceType")
    if instance_type not in INSTANCE_TYPES:
        raise Refused("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
    zone = zone_in(
        backend, name=response._get_param("AvailabilityZone"), zone_id=response._get_param("AvailabilityZoneId")
    )
    reserved = Reserved(
        instance_type=instance_type,
        instances=int(response._get_param("InstanceCount")),
        platform=response._get_param("InstancePlatform"),
        tenancy=response._get_param("Tenancy") or "default",
        match_criteria=response._get_param("InstanceMatchCriteria") or "open",
        zone=zone.name,
        zone_id=zone.zone_id,
        start=clock.now(),
        end=moment(response._get_param("EndDate")),
        placement_group_arn=response._get_param("PlacementGroupArn"),
        tags=tags_of(response),
    )
    reservations(backend)[reserved.reservation_id] = reserved
    return ActionResult({"CapacityReservation": shown(backend, reserved)})


def cancel_capacity_reservation(response: Any) -> ActionResult:
    reserved = existing(backend_of(response), response._get_param("CapacityReservationId"))
    if reserved.kind == CAPACITY_BLOCK:
        raise Refused("OperationNotPermitted", "A Capacity Block cannot be cancelled.")
    reserved.cancelled = True
    return ActionResult({"Return": True})


def describe_capacity_reservations(response: Any) -> ActionResult:
    backend, filters = backend_of(response), response._filters_from_querystring()
    ids = response._get_param("CapacityReservationIds", []) or []
    wanted = [existing(backend, name) for name in ids] or list(reservations(backend).values())
    described = [shown(backend, reserved) for reserved in wanted]
    return ActionResult({"CapacityReservations": [entry for entry in described if _matches(entry, filters)]})


def shown(backend: Any, reserved: Reserved) -> dict[str, Any]:
    """A reservation as DescribeCapacityReservations shows it."""
    state, tags = reserved.state(clock.now()), dict(reserved.tags)
    begun = state != "scheduled"
    if not begun:
        tags[SIZE_TAG] = str(reserved.instances)
    arn = f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:capacity-reservation/{reserved.reservation_id}"
    entry = {
        "CapacityReservationId": reserved.reservation_id,
        "OwnerId": backend.account_id,
        "CapacityReservationArn": arn,
        "AvailabilityZone": reserved.zone,
        "AvailabilityZoneId": reserved.zone_id,
        "InstanceType": reserved.instance_type,
        "InstancePlatform": reserved.platform,
        "Tenancy": reserved.tenancy,
        # A block has no capacity before it begins, says the EC2 documentation; its size is in a tag.
        "TotalInstanceCount": reserved.instances if begun else 0,
        "AvailableInstanceCount": _left(backend, reserved),
        "EbsOptimized": False,
        "EphemeralStorage": False,
        "State": state,
        "StartDate": reserved.start,
        "EndDateType": "limited" if reserved.end else "unlimited",
        "InstanceMatchCriteria": reserved.match_criteria,
        "CreateDate": reserved.start,
        "ReservationType": reserved.kind,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    known = {
        "EndDate": reserved.end,
        "CapacityBlockId": reserved.block_id,
        "PlacementGroupArn": reserved.placement_group_arn,
    }
    return entry | {key: value for key, value in known.items() if value is not None}


def backend_of(response: Any) -> Any:
    return ec2_backends[response.current_account][response.region]


def tags_of(response: Any) -> dict[str, str]:
    return convert_tag_spec(response._get_param("TagSpecifications", []) or []).get("capacity-reservation", {})


def moment(given: datetime | str | None) -> datetime | None:
    """A time of a request, in UTC."""
    if not given:
        return None
    read = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _left(backend: Any, reserved: Reserved) -> int:
    if reserved.state(clock.now()) != "active":
        return 0
    running = sum(
        vars(instance).get("capacity_reservation_id") == reserved.reservation_id and instance.state in RUNNING
        for instance in backend.all_instances()
    )
    return max(0, reserved.instances - running)


def _matches(entry: dict[str, Any], filters: dict[str, list[str]]) -> bool:
    tags = {f"tag:{tag['Key']}": tag["Value"] for tag in entry["Tags"]}
    named = {
        "instance-type": entry["InstanceType"],
        "state": entry["State"],
        "availability-zone": entry["AvailabilityZone"],
        "availability-zone-id": entry["AvailabilityZoneId"],
        "instance-platform": entry["InstancePlatform"],
        "tenancy": entry["Tenancy"],
        **tags,
    }
    return all(named.get(name) in wanted for name, wanted in filters.items())
