"""Volumes, snapshots and images."""

from decimal import Decimal

from trainium_core.audit.listings.ec2 import ec2_resource
from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import Charge, ChargedItem, Resource
from trainium_core.facts import facts

_INCLUDED_IOPS = 3000
"""Baseline of every gp3 volume, without charge (EBS documentation, General Purpose SSD)."""


@Listing("EBS volume", "AWS::EC2::Volume", arn_type="ec2:volume", permission="ec2:DescribeVolumes")
def _volumes(entry: Entry, _location: Location) -> Resource:
    return ec2_resource(
        entry,
        entry["VolumeId"],
        parents=tuple(attachment.get("InstanceId") for attachment in entry.get("Attachments", ())),
        state=entry["State"],
        detail=f"{entry['Size']} GiB {entry['VolumeType']}",
        created=entry.get("CreateTime"),
        charge=_volume_charge(entry),
    )


def _volume_charge(entry: Entry) -> Charge:
    if entry["VolumeType"] != "gp3":
        return Charge(unpriced=f"{entry['VolumeType']} volume")
    size = ChargedItem(product="gp3-storage", quantity=Decimal(entry["Size"]))
    faster = entry.get("Throughput", 0) - facts()["gp3_throughput"]["included"]
    throughput = ChargedItem(product="gp3-throughput", quantity=Decimal(faster) / 1024)
    return Charge(
        items=(size, throughput) if faster > 0 else (size,),
        unpriced="IOPS above the gp3 baseline" if entry.get("Iops", 0) > _INCLUDED_IOPS else "",
    )


@Listing(
    "EBS snapshot",
    "AWS::EC2::Snapshot",
    arn_type="ec2:snapshot",
    permission="ec2:DescribeSnapshots",
    arguments={"OwnerIds": ["self"]},
)
def _snapshots(entry: Entry, _location: Location) -> Resource:
    return ec2_resource(
        entry,
        entry["SnapshotId"],
        parents=(entry.get("VolumeId"),),
        state=entry.get("State", ""),
        detail=f"of a volume of {entry['VolumeSize']} GiB",
        created=entry.get("StartTime"),
        charge=Charge(unpriced="snapshot storage, billed for the changed blocks"),
    )


@Listing(
    "image", "AWS::EC2::Image", arn_type="ec2:image", permission="ec2:DescribeImages", arguments={"Owners": ["self"]}
)
def _images(entry: Entry, _location: Location) -> Resource:
    return ec2_resource(
        entry,
        entry["ImageId"],
        other_ids=(entry["Name"],) if entry.get("Name") else (),
        state=entry.get("State", ""),
        detail=entry.get("Name", ""),
        charge=Charge(note="its snapshots are billed"),
    )


STORAGE = (_volumes, _snapshots, _images)
