"""Existing buckets, file systems and volume encryption, as values and protocols."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


class Volumes(Protocol):
    def default_volume_key(self) -> str | None:
        """The customer managed key that encrypts new volumes by default; None for the AWS managed key."""
        ...


class Buckets(Protocol):
    def bucket_region(self, name: str) -> str | None:
        """The region of a bucket, empty if S3 does not return it; None if the bucket does not exist."""
        ...


@dataclass(frozen=True, kw_only=True)
class FsxFileSystem:
    """An FSx file system. `kind` and `state` are FSx's terms; `mount_name` is empty unless it is a Lustre one."""

    file_system_id: str
    kind: str
    state: str
    vpc_id: str
    subnet_id: str
    mount_name: str
    security_group_ids: Collection[str]


@dataclass(frozen=True, kw_only=True)
class MountTarget:
    """A mount target of an EFS file system. `clusters`: the tags trn:cluster of its security groups."""

    zone_id: str
    vpc_id: str
    state: str
    security_group_ids: Collection[str]
    clusters: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class EfsFileSystem:
    """An EFS file system. `only_zone_id`: the zone of a One Zone file system."""

    file_system_id: str
    state: str
    mount_targets: Sequence[MountTarget]
    only_zone_id: str | None = None


class FileSystems(Protocol):
    def fsx_file_system(self, file_system_id: str) -> FsxFileSystem | None: ...

    def efs_file_system(self, file_system_id: str) -> EfsFileSystem | None: ...
