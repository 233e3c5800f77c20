"""Existing buckets, file systems and volume encryption, from S3, FSx, EFS, EC2 and KMS."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_AWS_ALIAS = "alias/aws/ebs"
_ABSENT = ("FileSystemNotFound",)


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


class AwsStorage(AwsService):
    """Reads storage of one region. Methods raise UnavailableError if a request fails or is denied."""

    def default_volume_key(self) -> str | None:
        """The customer managed key that encrypts new volumes by default; None for the AWS managed key."""
        with read_errors("ec2:GetEbsDefaultKmsKeyId"):
            key = self.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
            return None if key.endswith(_AWS_ALIAS) or self._is_aws_owned(key) else key
        return None

    def bucket_region(self, name: str) -> str | None:
        """The region of a bucket, empty if S3 does not return it; None if the bucket does not exist."""
        with read_errors(f"s3:ListBucket on the bucket {name}", absent=("404", "NoSuchBucket")):
            answer = self.client("s3").head_bucket(Bucket=name)
            headers = answer["ResponseMetadata"]["HTTPHeaders"]
            return answer.get("BucketRegion") or headers.get("x-amz-bucket-region", "")
        return None

    def fsx_file_system(self, file_system_id: str) -> FsxFileSystem | None:
        """The FSx file system; None if it does not exist."""
        with read_errors("fsx:DescribeFileSystems", absent=_ABSENT):
            entry = self.client("fsx").describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"][0]
            return FsxFileSystem(
                file_system_id=file_system_id,
                kind=entry["FileSystemType"],
                state=entry["Lifecycle"],
                vpc_id=entry["VpcId"],
                subnet_id=entry["SubnetIds"][0],
                mount_name=entry.get("LustreConfiguration", {}).get("MountName", ""),
                security_group_ids=self._interface_groups(entry.get("NetworkInterfaceIds", [])),
            )
        return None

    def efs_file_system(self, file_system_id: str) -> EfsFileSystem | None:
        """The EFS file system with its mount targets; None if it does not exist."""
        with read_errors("elasticfilesystem:DescribeFileSystems", absent=_ABSENT):
            entry = self.client("efs").describe_file_systems(FileSystemId=file_system_id)["FileSystems"][0]
            return EfsFileSystem(
                file_system_id=file_system_id,
                state=entry["LifeCycleState"],
                mount_targets=tuple(self._mount_targets(file_system_id)),
                only_zone_id=entry.get("AvailabilityZoneId"),
            )
        return None

    def _is_aws_owned(self, key: str) -> bool:
        with read_errors("kms:DescribeKey"):
            return self.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyManager"] == "AWS"
        return False

    def _interface_groups(self, interface_ids: list[str]) -> frozenset[str]:
        """The file system's security groups, which FSx does not return."""
        if not interface_ids:  # without IDs, EC2 returns all interfaces
            return frozenset()
        with read_errors("ec2:DescribeNetworkInterfaces"):
            answer = self.client("ec2").describe_network_interfaces(NetworkInterfaceIds=interface_ids)
            return frozenset(
                group["GroupId"] for interface in answer["NetworkInterfaces"] for group in interface["Groups"]
            )

    def _mount_targets(self, file_system_id: str) -> Iterator[MountTarget]:
        with read_errors("elasticfilesystem:DescribeMountTargets"):
            pages = self.client("efs").get_paginator("describe_mount_targets").paginate(FileSystemId=file_system_id)
            entries = [entry for page in pages for entry in page["MountTargets"]]
        for entry in entries:
            groups = self._mount_target_groups(entry["MountTargetId"])
            yield MountTarget(
                zone_id=entry["AvailabilityZoneId"],
                vpc_id=entry["VpcId"],
                state=entry["LifeCycleState"],
                security_group_ids=groups,
                clusters=self._resource_clusters(groups),
            )

    def _mount_target_groups(self, mount_target_id: str) -> frozenset[str]:
        with read_errors("elasticfilesystem:DescribeMountTargetSecurityGroups"):
            answer = self.client("efs").describe_mount_target_security_groups(MountTargetId=mount_target_id)
            return frozenset(answer["SecurityGroups"])

    def _resource_clusters(self, group_ids: frozenset[str]) -> frozenset[str]:
        with read_errors("ec2:DescribeSecurityGroups"):
            answer = self.client("ec2").describe_security_groups(GroupIds=sorted(group_ids))
            clusters = (tag_values(group.get("Tags")).get(CLUSTER_TAG) for group in answer["SecurityGroups"])
            return frozenset(filter(None, clusters))
