"""How much the buckets and file systems hold that a cluster leaves behind on purpose."""

from itertools import islice

from trainium_core.teardown.account import StoredBytes
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService

_PAGES = 50  # of a bucket's objects: 50,000, within some seconds
_GIB = 1024**3


class AwsStoredSizes(AwsService):
    """Implements trainium_core.teardown.account.StoredSizes."""

    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:
        match kind:
            case "AWS::S3::Bucket":
                return self._in_bucket(resource_id)
            case "AWS::FSx::FileSystem":
                return self._in_fsx(resource_id)
            case "AWS::EFS::FileSystem":
                return self._in_efs(resource_id)
            case _:
                return StoredBytes(count=0)

    def _in_bucket(self, name: str) -> StoredBytes | None:
        with read_errors("s3:ListBucketVersions", absent=("NoSuchBucket",)):
            pages = self.client("s3").get_paginator("list_object_versions").paginate(Bucket=name)
            count, more = 0, False
            for page in islice(pages, _PAGES):
                count += sum(entry["Size"] for entry in page.get("Versions", []))
                more = bool(page.get("IsTruncated"))
            return StoredBytes(count=count, at_least=more)
        return None

    def _in_fsx(self, file_system_id: str) -> StoredBytes | None:
        """What it is billed for: its capacity, however much of it is used."""
        with read_errors("fsx:DescribeFileSystems", absent=("FileSystemNotFound",)):
            (entry,) = self.client("fsx").describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"]
            return StoredBytes(count=entry["StorageCapacity"] * _GIB)
        return None

    def _in_efs(self, file_system_id: str) -> StoredBytes | None:
        with read_errors("elasticfilesystem:DescribeFileSystems", absent=("FileSystemNotFound",)):
            (entry,) = self.client("efs").describe_file_systems(FileSystemId=file_system_id)["FileSystems"]
            return StoredBytes(count=entry["SizeInBytes"]["Value"])
        return None
