"""The AWS requests of `trn destroy`, with boto3's default credentials."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from trainium_core.engines.registry import ENGINES
from trainium_core.nodes.aws_control import AwsNodeControl
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.teardown.leftovers import Leftover, LeftoverKind, StoredBytes, Workload
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_Tagged = tuple[str, Mapping[str, str]]
"""ID and tags of a resource."""

_PAGES = 50  # With 50,000 versions and delete markers, which takes a few seconds.
_GIB = 1024**3
_NO_BUCKET = ("NoSuchBucket",)


class AwsTeardown(AwsStackControl, AwsNodeControl):
    """The requests of a teardown. Reads raise UnavailableError, changes RequestRefusedError."""

    def candidates(
        self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str], excluding: Collection[str]
    ) -> Sequence[Leftover]:
        """Resources that may belong to the cluster, except those with excluded IDs, whose tags need not be read.

        Log groups are found by the names of stacks and services, other resources by the cluster's tag. Attached network
        interfaces are not included.
        """
        match kind:
            case "log group":
                found = self._log_groups(stack_names, excluding)
            case "SSM parameter":
                found = self._parameters(cluster, excluding)
            case "snapshot":
                found = self._snapshots(cluster)
            case "network interface":
                found = self._interfaces(cluster)
        return [
            Leftover(kind=kind, resource_id=resource_id, tags=tags)
            for resource_id, tags in found
            if resource_id not in excluding
        ]

    def delete_leftover(self, leftover: Leftover) -> None:
        named = leftover.resource_id
        match leftover.kind:
            case "log group":
                with write_errors("logs:DeleteLogGroup", absent=("ResourceNotFoundException",)):
                    self.client("logs").delete_log_group(logGroupName=named)
            case "SSM parameter":
                with write_errors("ssm:DeleteParameter", absent=("ParameterNotFound",)):
                    self.client("ssm").delete_parameter(Name=named)
            case "snapshot":
                with write_errors("ec2:DeleteSnapshot", absent=("InvalidSnapshot.NotFound",)):
                    self.client("ec2").delete_snapshot(SnapshotId=named)
            case "network interface":
                with write_errors("ec2:DeleteNetworkInterface", absent=("InvalidNetworkInterfaceID.NotFound",)):
                    self.client("ec2").delete_network_interface(NetworkInterfaceId=named)

    def _log_groups(self, stack_names: Sequence[str], excluding: Collection[str]) -> Iterator[_Tagged]:
        client = self.client("logs")
        for prefix in [prefix for name in stack_names for prefix in (f"/aws/lambda/{name}-", f"{name}-")]:
            with read_errors("logs:DescribeLogGroups"):
                pages = client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
                entries = [entry for page in pages for entry in page["logGroups"]]
                found = [entry for entry in entries if entry["logGroupName"] not in excluding]
            for entry in found:
                arn = entry.get("logGroupArn") or entry["arn"].removesuffix(":*")
                with read_errors("logs:ListTagsForResource", absent=("ResourceNotFoundException",)):
                    yield entry["logGroupName"], client.list_tags_for_resource(resourceArn=arn).get("tags", {})

    def _parameters(self, cluster: str, excluding: Collection[str]) -> Iterator[_Tagged]:
        client = self.client("ssm")
        with read_errors("ssm:DescribeParameters"):
            filters = [{"Key": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
            pages = client.get_paginator("describe_parameters").paginate(ParameterFilters=filters)
            names = [entry["Name"] for page in pages for entry in page["Parameters"]]
        for name in (name for name in names if name not in excluding):
            with read_errors("ssm:ListTagsForResource", absent=("InvalidResourceId",)):
                answer = client.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)
                yield name, tag_values(answer["TagList"])

    def _snapshots(self, cluster: str) -> Iterator[_Tagged]:
        with read_errors("ec2:DescribeSnapshots"):
            pages = self.client("ec2").get_paginator("describe_snapshots")
            for page in pages.paginate(OwnerIds=["self"], Filters=_owner_filters(cluster)):
                yield from ((entry["SnapshotId"], tag_values(entry.get("Tags"))) for entry in page["Snapshots"])

    def _interfaces(self, cluster: str) -> Iterator[_Tagged]:
        free = {"Name": "status", "Values": ["available"]}
        with read_errors("ec2:DescribeNetworkInterfaces"):
            pages = self.client("ec2").get_paginator("describe_network_interfaces")
            for page in pages.paginate(Filters=[*_owner_filters(cluster), free]):
                for entry in page["NetworkInterfaces"]:
                    yield entry["NetworkInterfaceId"], tag_values(entry.get("TagSet"))

    def outliving_nodes(self, cluster: str) -> Sequence[str]:
        """Clauses about billed nodes of the cluster that `trn destroy` does not end, and how to end them."""
        return [clause for engine in ENGINES.values() for clause in engine.outliving_nodes(self, cluster)]

    def running_workloads(self, *, engines: Sequence[str], cluster: str) -> Sequence[Workload]:
        """The running workloads of the cluster on these engines; those of some if others cannot be asked.

        Raises:
            UnavailableError: An engine cannot be asked, and the others have no running workload.
        """
        found, failed = list[Workload](), list[UnavailableError]()
        for workloads in filter(None, (ENGINES[engine].workloads() for engine in engines)):
            try:
                found += workloads.running(self, cluster)
            except UnavailableError as error:
                failed.append(error)
        if failed and not found:
            raise failed[0]
        return found

    def stop(self, work: Workload) -> None:
        every = [workloads.stop for engine in ENGINES.values() if (workloads := engine.workloads())]
        (stop,) = [functions[work.kind] for functions in every if work.kind in functions]
        stop(self, work.work_id)

    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:
        """The data in a bucket or EFS file system, or the capacity of an FSx file system; None if it does not exist."""
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
        with read_errors("s3:ListBucketVersions", absent=_NO_BUCKET):
            pages = self.client("s3").get_paginator("list_object_versions").paginate(Bucket=name)
            count, more = 0, False
            for page in islice(pages, _PAGES):
                count += sum(entry["Size"] for entry in page.get("Versions", []))
                more = bool(page.get("IsTruncated"))
            return StoredBytes(count=count, at_least=more)
        return None

    def _in_fsx(self, file_system_id: str) -> StoredBytes | None:
        """The capacity of the file system, which is billed regardless of use. Intelligent-Tiering has none."""
        with read_errors("fsx:DescribeFileSystems", absent=("FileSystemNotFound",)):
            (entry,) = self.client("fsx").describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"]
            capacity = entry.get("StorageCapacity")
            return StoredBytes(count=(capacity or 0) * _GIB, at_least=capacity is None)
        return None

    def _in_efs(self, file_system_id: str) -> StoredBytes | None:
        with read_errors("elasticfilesystem:DescribeFileSystems", absent=("FileSystemNotFound",)):
            (entry,) = self.client("efs").describe_file_systems(FileSystemId=file_system_id)["FileSystems"]
            return StoredBytes(count=entry["SizeInBytes"]["Value"])
        return None

    def is_empty(self, kind: str, resource_id: str) -> bool | None:
        """Whether a bucket or ECR repository has no content, or does not exist. None for other types.

        Args:
            kind: CloudFormation's type of the resource.
            resource_id: Its physical ID.
        """
        match kind:
            case "AWS::S3::Bucket":
                with read_errors("s3:ListBucketVersions", absent=_NO_BUCKET):
                    page = self.client("s3").list_object_versions(Bucket=resource_id, MaxKeys=1)
                    return not (page.get("Versions") or page.get("DeleteMarkers"))
            case "AWS::ECR::Repository":
                with read_errors("ecr:DescribeImages", absent=("RepositoryNotFoundException",)):
                    page = self.client("ecr").describe_images(repositoryName=resource_id, maxResults=1)
                    return not page["imageDetails"]
            case _:
                return None
        return True

    def bucket_tags(self, name: str) -> Mapping[str, str]:
        """The tags of a bucket; empty without tags or without the bucket."""
        with read_errors("s3:GetBucketTagging", absent=(*_NO_BUCKET, "NoSuchTagSet")):
            return tag_values(self.client("s3").get_bucket_tagging(Bucket=name)["TagSet"])
        return {}

    def delete_some(self, bucket: str) -> int:
        """Delete as many versions and delete markers, or else unfinished uploads, as one request lists.

        Returns:
            The number of deleted entries; 0 if the bucket is empty or does not exist.
        """
        return self._delete_versions(bucket) or self._abort_uploads(bucket)

    def delete_bucket(self, name: str) -> None:
        with write_errors("s3:DeleteBucket", absent=_NO_BUCKET):
            self.client("s3").delete_bucket(Bucket=name)

    def _delete_versions(self, bucket: str) -> int:
        # Always the first page: its content is deleted before the next request.
        with read_errors("s3:ListBucketVersions", absent=_NO_BUCKET):
            page = self.client("s3").list_object_versions(Bucket=bucket)
            entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            keys = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries]
            if keys:
                self._delete(bucket, keys)
            return len(keys)
        return 0

    def _delete(self, bucket: str, keys: list[dict[str, str]]) -> None:
        with write_errors("s3:DeleteObject and s3:DeleteObjectVersion", absent=_NO_BUCKET):
            answer = self.client("s3").delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
            errors: list[Mapping[str, Any]] = answer.get("Errors", [])
            if errors:
                raise RequestRefusedError(
                    f"{errors[0]['Key']}: {errors[0]['Message']} ({len(errors)} of {len(keys)} not deleted)"
                )

    def _abort_uploads(self, bucket: str) -> int:
        with read_errors("s3:ListBucketMultipartUploads", absent=_NO_BUCKET):
            uploads = self.client("s3").list_multipart_uploads(Bucket=bucket).get("Uploads", [])
            for upload in uploads:
                with write_errors("s3:AbortMultipartUpload", absent=("NoSuchUpload", *_NO_BUCKET)):
                    arguments = {"Key": upload["Key"], "UploadId": upload["UploadId"]}
                    self.client("s3").abort_multipart_upload(Bucket=bucket, **arguments)
            return len(uploads)
        return 0


def _owner_filters(cluster: str) -> list[Mapping[str, Any]]:
    return [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
