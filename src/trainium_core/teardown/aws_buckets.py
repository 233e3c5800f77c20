"""Empties and deletes buckets: versions, delete markers and unfinished uploads."""

from collections.abc import Mapping
from typing import Any

from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.tags import tag_values

_NO_BUCKET = ("NoSuchBucket",)


class AwsBucketControl(AwsService):
    """Implements trainium_core.teardown.account.Buckets."""

    def bucket_tags(self, name: str) -> Mapping[str, str]:
        with read_errors("s3:GetBucketTagging", absent=(*_NO_BUCKET, "NoSuchTagSet")):
            return tag_values(self.client("s3").get_bucket_tagging(Bucket=name)["TagSet"])
        return {}

    def delete_some(self, bucket: str) -> int:
        return self._delete_versions(bucket) or self._abort_uploads(bucket)

    def delete_bucket(self, name: str) -> None:
        with write_errors("s3:DeleteBucket", absent=_NO_BUCKET):
            self.client("s3").delete_bucket(Bucket=name)

    def _delete_versions(self, bucket: str) -> int:
        # Always the first page: what it held is gone when it is asked for again.
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
                raise RequestRefusedError(f"{errors[0]['Key']}: {errors[0]['Message']} ({len(errors)} in all)")

    def _abort_uploads(self, bucket: str) -> int:
        with read_errors("s3:ListBucketMultipartUploads", absent=_NO_BUCKET):
            uploads = self.client("s3").list_multipart_uploads(Bucket=bucket).get("Uploads", [])
            for upload in uploads:
                with write_errors("s3:AbortMultipartUpload", absent=("NoSuchUpload", *_NO_BUCKET)):
                    arguments = {"Key": upload["Key"], "UploadId": upload["UploadId"]}
                    self.client("s3").abort_multipart_upload(Bucket=bucket, **arguments)
            return len(uploads)
        return 0
