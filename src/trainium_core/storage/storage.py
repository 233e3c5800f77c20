"""Buckets, file systems and volume encryption that exist already."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


class Volumes(Protocol):
    def default_volume_key(self) -> str | None:
        """The customer's key that new volumes are encrypted with by default; None when it is AWS's."""
        ...


class Buckets(Protocol):
    def bucket_region(self, name: str) -> str | None:
        """The region of a bucket, empty where it is not returned; None when there is no such bucket."""
        ...


@dataclass(frozen=True, kw_only=True)
class FsxFileSystem:
    """A file system of FSx. `kind` and `state` as FSx calls them; `mount_name` is empty unless it is of Lustre."""

    file_system_id: str
    kind: str
    state: str
    vpc_id: str
    subnet_id: str
    mount_name: str
    security_group_ids: Collection[str]


@dataclass(frozen=True, kw_only=True)
class MountTarget:
    """Where an EFS file system is reached in a zone. `clusters` are the tags trn:cluster of its security groups."""

    zone_id: str
    vpc_id: str
    state: str
    security_group_ids: Collection[str]
    clusters: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class EfsFileSystem:
    """A file system of EFS. `only_zone_id` is the zone of one that is kept in a single one."""

    file_system_id: str
    state: str
    mount_targets: Sequence[MountTarget]
    only_zone_id: str | None = None


class FileSystems(Protocol):
    def fsx_file_system(self, file_system_id: str) -> FsxFileSystem | None: ...

    def efs_file_system(self, file_system_id: str) -> EfsFileSystem | None: ...
