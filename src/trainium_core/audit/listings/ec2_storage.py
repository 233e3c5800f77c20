"""Volumes, snapshots and images."""

from decimal import Decimal

from trainium_core.audit.listings.ec2 import ec2_resource, of_ec2
from trainium_core.audit.listings.listing import Entry, Location
from trainium_core.audit.resource import Charge, ChargedItem, Resource
from trainium_core.facts import facts

_INCLUDED_IOPS = 3000
"""Baseline of every gp3 volume, without charge (EBS documentation, General Purpose SSD)."""


def _volume(entry: Entry, location: Location) -> Resource:
    return ec2_resource(
        entry,
        location,
        arn_type="volume",
        resource_id=entry["VolumeId"],
        parents=tuple(attachment.get("InstanceId") for attachment in entry.get("Attachments", ())),
        state=entry["State"],
        detail=f"{entry['Size']} GiB {entry['VolumeType']}",
        created=entry.get("CreateTime"),
        charge=_charge_of_volume(entry),
    )


def _charge_of_volume(entry: Entry) -> Charge:
    if entry["VolumeType"] != "gp3":
        return Charge(unpriced=f"{entry['VolumeType']} volume")
    size = ChargedItem(product="gp3-storage", quantity=Decimal(entry["Size"]))
    faster = entry.get("Throughput", 0) - facts()["gp3_throughput"]["included"]
    throughput = ChargedItem(product="gp3-throughput", quantity=Decimal(faster) / 1024)
    return Charge(
        items=(size, throughput) if faster > 0 else (size,),
        unpriced="more IOPS than every gp3 volume has" if entry.get("Iops", 0) > _INCLUDED_IOPS else "",
    )


def _snapshot(entry: Entry, location: Location) -> Resource:
    return ec2_resource(
        entry,
        location,
        arn_type="snapshot",
        resource_id=entry["SnapshotId"],
        parents=(entry.get("VolumeId"),),
        state=entry.get("State", ""),
        detail=f"of a volume of {entry['VolumeSize']} GiB",
        created=entry.get("StartTime"),
        charge=Charge(unpriced="snapshot storage, by the blocks that only it holds"),
    )


def _image(entry: Entry, location: Location) -> Resource:
    return ec2_resource(
        entry,
        location,
        arn_type="image",
        resource_id=entry["ImageId"],
        other_ids=(entry["Name"],) if entry.get("Name") else (),
        state=entry.get("State", ""),
        detail=entry.get("Name", ""),
        charge=Charge(note="its snapshots are billed"),
    )


STORAGE = (
    of_ec2(
        kind="EBS volume",
        resource_type="Volume",
        arn_type="volume",
        permission="DescribeVolumes",
        read=_volume,
    ),
    of_ec2(
        kind="EBS snapshot",
        resource_type="Snapshot",
        arn_type="snapshot",
        permission="DescribeSnapshots",
        read=_snapshot,
        arguments={"OwnerIds": ["self"]},
    ),
    of_ec2(
        kind="image",
        resource_type="Image",
        arn_type="image",
        permission="DescribeImages",
        read=_image,
        arguments={"Owners": ["self"]},
    ),
)
