"""Custom::TrnBucketFiles: writes small text files of the template to a bucket, and deletes them with the resource."""

from typing import Any

from .custom_resource import respond
from .permissions import retry_until_permitted


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    properties, before = event["ResourceProperties"], event.get("OldResourceProperties", {})
    bucket, prefix = properties["BucketName"], properties["Prefix"]
    failure = None
    try:
        if event["RequestType"] == "Delete":
            retry_until_permitted(lambda: remove_if_exists(bucket, keys(properties)))
        else:
            retry_until_permitted(lambda: write(bucket, prefix, properties["Files"]))
            # The files that are no longer in the template. If the bucket has changed, CloudFormation later deletes the
            # old resource, and with it the files in the old bucket.
            remove(bucket, keys(before) - keys(properties) if before.get("BucketName") == bucket else set())
    except Exception as error:  # CloudFormation needs a response
        done = "deleted" if event["RequestType"] == "Delete" else "updated"
        failure = f"the files of s3://{bucket}/{prefix} could not be {done}: {error}"
    respond(event, failure=failure, physical_id=f"{bucket}/{prefix}")


def keys(properties: dict[str, Any]) -> set[str]:
    """The keys of the files of a resource."""
    return {f"{properties['Prefix']}/{name}" for name in properties.get("Files", {})}


def write(bucket: str, prefix: str, files: dict[str, str]) -> None:
    import boto3

    s3: Any = boto3.client("s3")
    for name, text in files.items():
        s3.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=text.encode())


def remove_if_exists(bucket: str, gone: set[str]) -> None:
    """Delete objects, unless the bucket does not exist any more."""
    from botocore.exceptions import ClientError

    try:
        remove(bucket, gone)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise


def remove(bucket: str, gone: set[str]) -> None:
    import boto3

    s3: Any = boto3.client("s3")
    for key in sorted(gone):
        s3.delete_object(Bucket=bucket, Key=key)
