"""Custom::TrnNodeSubnet: selects the first subnet whose zone offers the nodes' instance type, or has their reservation.

An update keeps the subnet while it is one of the candidates and neither instance type nor reservation has changed, or
if the reservation does not exist any more.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainium_runtime.log import log

from .custom_resource import Result, explained
from .permissions import retry_until_permitted

RESOURCE_TYPE = "Custom::TrnNodeSubnet"
_DECIDING = ("InstanceType", "ReservationId")
_ENDED = "InvalidCapacityReservationId.NotFound"
"""EC2's error for a reservation that does not exist, such as one that ended some time ago (EC2 API, error codes)."""


def provide(event: Mapping[str, Any]) -> Result:
    from botocore.exceptions import ClientError

    properties, old = event["ResourceProperties"], event.get("OldResourceProperties", {})
    subnets, instance_type = properties["SubnetIds"], properties["InstanceType"]
    reservation = properties.get("ReservationId")
    chosen = str(event.get("PhysicalResourceId"))
    if chosen not in subnets or any(properties.get(name) != old.get(name) for name in _DECIDING):
        with explained(f"the zones of the subnets and of {reservation or instance_type} could not be read"):
            try:
                zones, offering = retry_until_permitted(lambda: _describe(subnets, instance_type, reservation))
            except ClientError as error:
                if error.response["Error"]["Code"] != _ENDED or chosen not in subnets:
                    raise
                log(f"{chosen} is kept: {error}")
                return Result(physical_id=chosen, data={"SubnetId": chosen})
        suitable = [subnet for subnet in subnets if zones.get(subnet) in offering]
        if not suitable:
            raise RuntimeError(
                _sentence(f"has {reservation}" if reservation else f"offers {instance_type}", zones, offering)
            )
        chosen = chosen if chosen in suitable else suitable[0]
        log(f"{chosen} in {zones[chosen]}")
    return Result(physical_id=chosen, data={"SubnetId": chosen})


def _describe(
    subnets: Sequence[str], instance_type: str, reservation: str | None
) -> tuple[Mapping[str, str], Sequence[str]]:
    """The zone IDs of the subnets by subnet ID, and the IDs of the zones with the reservation, or else the type."""
    import boto3

    ec2: Any = boto3.client("ec2")
    described = ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]
    zones = {subnet["SubnetId"]: subnet["AvailabilityZoneId"] for subnet in described}
    if reservation:
        found = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"]
        return zones, [each["AvailabilityZoneId"] for each in found]
    offers = ec2.describe_instance_type_offerings(
        LocationType="availability-zone-id", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
    )["InstanceTypeOfferings"]
    return zones, sorted(offer["Location"] for offer in offers)


def _sentence(zone_property: str, zones: Mapping[str, str], offering: Sequence[str]) -> str:
    locations = ", ".join(f"{subnet} in {zone}" for subnet, zone in zones.items())
    fix = (
        f"these zones of the region do: {', '.join(offering)}. "
        "Add a subnet in one of them to the VPC, and select it with vpc_subnets"
        if offering
        else "no zone of the region does. Choose another region or instance type"
    )
    return f"none of the subnets is in a zone that {zone_property}: {locations}; {fix}"
