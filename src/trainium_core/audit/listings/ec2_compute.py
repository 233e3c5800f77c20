"""Instances, launch templates, and reserved capacity."""

from decimal import Decimal

from trainium_core.audit.listings.ec2 import ec2_resource, of_ec2
from trainium_core.audit.listings.listing import Entry, Location
from trainium_core.audit.resource import FREE, Charge, ChargedItem, Resource
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT

_BILLED_STATES = ("pending", "running")
_PREPAID = Charge(note="paid when it was bought")
_RESERVED_STATES = ("active", "pending", "scheduled", "assessing", "payment-pending", "delayed")


def _instance(entry: Entry, location: Location) -> Resource | None:
    state = entry["State"]["Name"]
    if state == "terminated":  # EC2 lists it for another hour, but does not bill it
        return None
    return ec2_resource(
        entry,
        location,
        arn_type="instance",
        resource_id=entry["InstanceId"],
        parents=(entry.get("VpcId"),),
        state=state,
        detail=entry["InstanceType"],
        created=entry.get("LaunchTime"),
        charge=_charge_of_instance(entry) if state in _BILLED_STATES else FREE,
    )


def _charge_of_instance(entry: Entry) -> Charge:
    lifecycle = entry.get("InstanceLifecycle")
    if lifecycle == CAPACITY_BLOCK:
        return _PREPAID
    product = SPOT if lifecycle == "spot" else ON_DEMAND
    return Charge(items=(ChargedItem(product=product, quantity=Decimal(1), instance_type=entry["InstanceType"]),))


def _reservation(entry: Entry, location: Location) -> Resource | None:
    if entry["State"] not in _RESERVED_STATES:
        return None
    free = entry.get("AvailableInstanceCount", 0)
    return ec2_resource(
        entry,
        location,
        arn_type="capacity-reservation",
        resource_id=entry["CapacityReservationId"],
        state=entry["State"],
        detail=f"{entry['TotalInstanceCount']} x {entry['InstanceType']}, {free} unused",
        created=entry.get("CreateDate"),
        charge=_charge_of_reservation(entry, free),
    )


def _charge_of_reservation(entry: Entry, free: int) -> Charge:
    """Only the unused part. Instances in the reservation are billed as instances."""
    if entry.get("ReservationType") == CAPACITY_BLOCK:
        return _PREPAID
    if entry["State"] != "active" or not free:
        return FREE
    unused = ChargedItem(product=ON_DEMAND, quantity=Decimal(free), instance_type=entry["InstanceType"])
    return Charge(items=(unused,))


def _placement_group(entry: Entry, location: Location) -> Resource:
    ids = (entry["GroupId"],) if "GroupId" in entry else ()
    return ec2_resource(
        entry,
        location,
        arn_type="placement-group",
        resource_id=entry["GroupName"],
        other_ids=ids,
        state=entry["State"],
        detail=entry.get("Strategy", ""),
    )


def _launch_template(entry: Entry, location: Location) -> Resource:
    return ec2_resource(
        entry,
        location,
        arn_type="launch-template",
        resource_id=entry["LaunchTemplateId"],
        other_ids=(entry["LaunchTemplateName"],),
        detail=entry["LaunchTemplateName"],
        created=entry.get("CreateTime"),
    )


def _key_pair(entry: Entry, location: Location) -> Resource:
    ids = (entry["KeyName"],)
    return ec2_resource(
        entry, location, arn_type="key-pair", resource_id=entry["KeyPairId"], other_ids=ids, detail=entry["KeyName"]
    )


COMPUTE = (
    of_ec2(
        kind="EC2 instance",
        resource_type="Instance",
        arn_type="instance",
        permission="DescribeInstances",
        entries="Reservations[].Instances[]",
        read=_instance,
    ),
    of_ec2(
        kind="capacity reservation",
        resource_type="CapacityReservation",
        arn_type="capacity-reservation",
        permission="DescribeCapacityReservations",
        read=_reservation,
    ),
    of_ec2(
        kind="placement group",
        resource_type="PlacementGroup",
        arn_type="placement-group",
        permission="DescribePlacementGroups",
        read=_placement_group,
        in_estimates=False,
    ),
    of_ec2(
        kind="launch template",
        resource_type="LaunchTemplate",
        arn_type="launch-template",
        permission="DescribeLaunchTemplates",
        read=_launch_template,
        in_estimates=False,
    ),
    of_ec2(
        kind="key pair",
        resource_type="KeyPair",
        arn_type="key-pair",
        permission="DescribeKeyPairs",
        read=_key_pair,
        in_estimates=False,
    ),
)
