"""Custom::TrnBucketContent: empties a bucket with the tag trn:empty-at-delete=true at deletion."""

from collections.abc import Mapping
from typing import Any

from trainium_runtime.log import log
from trainium_runtime.naming import EMPTY_AT_DELETE_TAG
from trainium_runtime.tags import tag_values

from .custom_resource import Result, explained
from .permissions import retry_until_permitted

RESOURCE_TYPE = "Custom::TrnBucketContent"


def provide(event: Mapping[str, Any]) -> Result:
    return Result(physical_id=f"{event['ResourceProperties']['BucketName']}/content")


def delete(event: Mapping[str, Any]) -> None:
    bucket = event["ResourceProperties"]["BucketName"]
    with explained(f"bucket {bucket} could not be emptied"):
        log(f"deleted {retry_until_permitted(lambda: _empty(bucket))} versions and delete markers of {bucket}")


def _empty(bucket: str) -> int:
    """Delete all versions and delete markers of a bucket that has the tag with the value `true`.

    Returns:
        How many were deleted: 0 without the tag or without the bucket.

    Raises:
        RuntimeError: S3 did not delete some of them.
        ClientError: AWS refused a request.
    """
    import boto3
    from botocore.exceptions import ClientError

    s3: Any = boto3.client("s3")
    try:
        tags = tag_values(s3.get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchBucket", "NoSuchTagSet"):
            return 0
        raise
    if tags.get(EMPTY_AT_DELETE_TAG) != "true":
        return 0
    deleted = 0
    # Always the first page: the objects of the previous one have been deleted.
    while keys := _first_versions(s3, bucket):
        errors = s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True}).get("Errors", [])
        if errors:
            raise RuntimeError(f"{errors[0]['Key']}: {errors[0]['Message']} (objects not deleted: {len(errors)})")
        deleted += len(keys)
    return deleted


def _first_versions(s3: Any, bucket: str) -> list[dict[str, str]]:
    """Up to 1,000 versions and delete markers, the limit of one request."""
    page = s3.list_object_versions(Bucket=bucket)
    entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries]
