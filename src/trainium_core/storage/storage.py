"""Existing buckets, file systems and volume encryption, as values and protocols."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


class Volumes(Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def default_volume_key(self) -> str | None:
        """The customer managed key that encrypts new volumes by default; None for the AWS managed key."""
        ...


class Buckets(Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def bucket_region(self, name: str) -> str | None:
        """The region of a bucket, empty if S3 does not return it; None if the bucket does not exist."""
        ...


@dataclass(frozen=True, kw_only=True)
class FsxFileSystem:
    """An FSx file system.

    Attributes:
        kind: FSx's term, such as LUSTRE.
        state: FSx's term, such as AVAILABLE.
        subnet_id: The first subnet of the file system.
        mount_name: Mount name of a Lustre file system; empty for other types.
        security_group_ids: Security groups of the network interfaces; empty without interfaces.
    """

    file_system_id: str
    kind: str
    state: str
    vpc_id: str
    subnet_id: str
    mount_name: str
    security_group_ids: Collection[str]


@dataclass(frozen=True, kw_only=True)
class MountTarget:
    """A mount target of an EFS file system.

    Attributes:
        state: EFS's term, such as available.
        clusters: Values of the tag trn:cluster on the security groups.
    """

    zone_id: str
    vpc_id: str
    state: str
    security_group_ids: Collection[str]
    clusters: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class EfsFileSystem:
    """An EFS file system.

    Attributes:
        state: EFS's term, such as available.
        only_zone_id: Availability Zone ID of a One Zone file system; None for a regional file system.
    """

    file_system_id: str
    state: str
    mount_targets: Sequence[MountTarget]
    only_zone_id: str | None = None


class FileSystems(Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def fsx_file_system(self, file_system_id: str) -> FsxFileSystem | None:
        """The FSx file system; None if it does not exist."""
        ...

    def efs_file_system(self, file_system_id: str) -> EfsFileSystem | None:
        """The EFS file system with its mount targets; None if it does not exist."""
        ...
