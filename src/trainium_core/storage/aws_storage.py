"""Reads buckets, file systems and volume encryption from S3, FSx, EFS, EC2 and KMS."""

from collections.abc import Iterator

from trainium_core.storage.storage import EfsFileSystem, FsxFileSystem, MountTarget
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_ALIAS_OF_AWS = "alias/aws/ebs"


class AwsVolumes(AwsService):
    def default_volume_key(self) -> str | None:
        """The customer managed key that encrypts new volumes by default; None for the AWS managed key."""
        with read_errors("ec2:GetEbsDefaultKmsKeyId"):
            key = self.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
            return None if key.endswith(_ALIAS_OF_AWS) or self._is_aws_owned(key) else key
        return None

    def _is_aws_owned(self, key: str) -> bool:
        with read_errors("kms:DescribeKey"):
            return self.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyManager"] == "AWS"
        return False


class AwsBuckets(AwsService):
    def bucket_region(self, name: str) -> str | None:
        with read_errors(f"s3:ListBucket on the bucket {name}", absent=("404", "NoSuchBucket")):
            answer = self.client("s3").head_bucket(Bucket=name)
            headers = answer["ResponseMetadata"]["HTTPHeaders"]
            return answer.get("BucketRegion") or headers.get("x-amz-bucket-region", "")
        return None


_ABSENT = ("FileSystemNotFound",)


class AwsFileSystems(AwsService):
    def fsx_file_system(self, file_system_id: str) -> FsxFileSystem | None:
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
        with read_errors("elasticfilesystem:DescribeFileSystems", absent=_ABSENT):
            entry = self.client("efs").describe_file_systems(FileSystemId=file_system_id)["FileSystems"][0]
            return EfsFileSystem(
                file_system_id=file_system_id,
                state=entry["LifeCycleState"],
                mount_targets=tuple(self._mount_targets(file_system_id)),
                only_zone_id=entry.get("AvailabilityZoneId"),
            )
        return None

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
