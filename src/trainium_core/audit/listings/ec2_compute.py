"""Instances, capacity reservations, placement groups, launch templates, and key pairs."""

from decimal import Decimal

from trainium_core.audit.listings.ec2 import ec2_resource
from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import FREE, Charge, ChargedItem, Resource
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT

_RUNNING_STATES = ("pending", "running")
_PREPAID = Charge(note="paid when it was bought")
_RESERVED_STATES = ("active", "pending", "scheduled", "assessing", "payment-pending", "delayed")


@Listing(
    "EC2 instance",
    "AWS::EC2::Instance",
    arn_type="ec2:instance",
    permission="ec2:DescribeInstances",
    entries="Reservations[].Instances[]",
)
def _instances(entry: Entry, _location: Location) -> Resource | None:
    state = entry["State"]["Name"]
    if state == "terminated":  # EC2 lists it for about an hour, but does not bill it
        return None
    return ec2_resource(
        entry,
        entry["InstanceId"],
        parents=(entry.get("VpcId"),),
        state=state,
        detail=entry["InstanceType"],
        created=entry.get("LaunchTime"),
        charge=_instance_charge(entry) if state in _RUNNING_STATES else FREE,
    )


def _instance_charge(entry: Entry) -> Charge:
    lifecycle = entry.get("InstanceLifecycle")
    if lifecycle == CAPACITY_BLOCK:
        return _PREPAID
    product = SPOT if lifecycle == "spot" else ON_DEMAND
    return Charge(items=(ChargedItem(product=product, quantity=Decimal(1), instance_type=entry["InstanceType"]),))


@Listing(
    "capacity reservation",
    "AWS::EC2::CapacityReservation",
    arn_type="ec2:capacity-reservation",
    permission="ec2:DescribeCapacityReservations",
)
def _reservations(entry: Entry, _location: Location) -> Resource | None:
    if entry["State"] not in _RESERVED_STATES:
        return None
    free = entry.get("AvailableInstanceCount", 0)
    return ec2_resource(
        entry,
        entry["CapacityReservationId"],
        state=entry["State"],
        detail=f"{entry['TotalInstanceCount']} x {entry['InstanceType']}, {free} unused",
        created=entry.get("CreateDate"),
        charge=_reservation_charge(entry, free),
    )


def _reservation_charge(entry: Entry, free: int) -> Charge:
    """Only the unused part. Instances in the reservation are billed as instances."""
    if entry.get("ReservationType") == CAPACITY_BLOCK:
        return _PREPAID
    if entry["State"] != "active" or not free:
        return FREE
    unused = ChargedItem(product=ON_DEMAND, quantity=Decimal(free), instance_type=entry["InstanceType"])
    return Charge(items=(unused,))


@Listing(
    "placement group",
    "AWS::EC2::PlacementGroup",
    arn_type="ec2:placement-group",
    permission="ec2:DescribePlacementGroups",
    in_estimates=False,
)
def _placement_groups(entry: Entry, _location: Location) -> Resource:
    ids = (entry["GroupId"],) if "GroupId" in entry else ()
    return ec2_resource(
        entry,
        entry["GroupName"],
        other_ids=ids,
        state=entry["State"],
        detail=entry.get("Strategy", ""),
    )


@Listing(
    "launch template",
    "AWS::EC2::LaunchTemplate",
    arn_type="ec2:launch-template",
    permission="ec2:DescribeLaunchTemplates",
    in_estimates=False,
)
def _launch_templates(entry: Entry, _location: Location) -> Resource:
    return ec2_resource(
        entry,
        entry["LaunchTemplateId"],
        other_ids=(entry["LaunchTemplateName"],),
        detail=entry["LaunchTemplateName"],
        created=entry.get("CreateTime"),
    )


@Listing(
    "key pair", "AWS::EC2::KeyPair", arn_type="ec2:key-pair", permission="ec2:DescribeKeyPairs", in_estimates=False
)
def _key_pairs(entry: Entry, _location: Location) -> Resource:
    ids = (entry["KeyName"],)
    return ec2_resource(entry, entry["KeyPairId"], other_ids=ids, detail=entry["KeyName"])


COMPUTE = (_instances, _reservations, _placement_groups, _launch_templates, _key_pairs)
