"""File systems and their backups."""

from decimal import Decimal

from trainium_core.audit.listings.listing import Entry, Listing, Location, entry_tags, gib
from trainium_core.audit.resource import Charge, ChargedItem, Resource

_BYTES_PER_GB = 2**30


@Listing("FSx file system", "AWS::FSx::FileSystem", arn_type="fsx:file-system", permission="fsx:DescribeFileSystems")
def _fsx_file_systems(entry: Entry, _location: Location) -> Resource:
    # Intelligent-Tiering storage has no capacity.
    file_system_id, size = entry["FileSystemId"], entry.get("StorageCapacity")
    return Resource(
        name=file_system_id,
        arn=entry.get("ResourceARN", ""),
        ids=frozenset([file_system_id]),
        tags=entry_tags(entry),
        state=entry.get("Lifecycle", ""),
        detail=f"{size} GiB, {entry['FileSystemType']}" if size else entry["FileSystemType"],
        created=entry.get("CreationTime"),
        charge=_fsx_charge(entry),
    )


def _fsx_charge(entry: Entry) -> Charge:
    """This package has a price only for SSD storage of scratch FSx for Lustre file systems."""
    deployment = entry.get("LustreConfiguration", {}).get("DeploymentType", "")
    if not deployment.startswith("SCRATCH") or entry.get("StorageType", "SSD") != "SSD":
        return Charge(unpriced=f"{entry['FileSystemType']} storage{f' ({deployment})' if deployment else ''}")
    return Charge(items=(ChargedItem(product="fsx-lustre-storage", quantity=Decimal(entry["StorageCapacity"])),))


@Listing("FSx backup", "AWS::FSx::Backup", arn_type="fsx:backup", permission="fsx:DescribeBackups")
def _backups(entry: Entry, _location: Location) -> Resource:
    backup_id, file_system_id = entry["BackupId"], entry.get("FileSystem", {}).get("FileSystemId")
    return Resource(
        name=backup_id,
        arn=entry.get("ResourceARN", ""),
        ids=frozenset([backup_id]),
        tags=entry_tags(entry),
        parents=frozenset([file_system_id] if file_system_id else []),
        state=entry.get("Lifecycle", ""),
        detail=f"{entry.get('Type', '')} backup of {file_system_id or 'a file system'}".strip(),
        created=entry.get("CreationTime"),
        charge=Charge(unpriced="backup storage"),
    )


@Listing(
    "EFS file system",
    "AWS::EFS::FileSystem",
    arn_type="elasticfilesystem:file-system",
    permission="elasticfilesystem:DescribeFileSystems",
    service="efs",
)
def _efs_file_systems(entry: Entry, _location: Location) -> Resource:
    file_system_id, size = entry["FileSystemId"], entry["SizeInBytes"]
    # This package has a price only for regional Standard storage.
    is_one_zone = "AvailabilityZoneId" in entry
    elsewhere = size["Value"] if is_one_zone else size.get("ValueInIA", 0) + size.get("ValueInArchive", 0)
    stored = Decimal(size["Value"] - elsewhere) / _BYTES_PER_GB
    return Resource(
        name=file_system_id,
        arn=entry.get("FileSystemArn", ""),
        ids=frozenset([file_system_id]),
        tags=entry_tags(entry),
        state=entry["LifeCycleState"],
        detail=f"{gib(size['Value'])}{', ' + entry['Name'] if entry.get('Name') else ''}",
        created=entry.get("CreationTime"),
        charge=Charge(
            items=() if is_one_zone else (ChargedItem(product="efs-storage", quantity=stored),),
            unpriced="data outside EFS Standard" if elsewhere else "",
        ),
    )


FILE_SYSTEMS = (_fsx_file_systems, _backups, _efs_file_systems)
