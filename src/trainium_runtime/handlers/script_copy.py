"""Custom::TrnScriptCopy: copies a script of the app's assets into a versioned bucket of the stack.

Answers `VersionId`, by which nodes fetch it. The deletion of the bucket removes all versions.
"""

import hashlib
from typing import Any

from .custom_resource import respond
from .permissions import retry_until_permitted


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    wanted = event["ResourceProperties"]
    failure, data = None, None
    try:
        if event["RequestType"] != "Delete":
            data = {"VersionId": retry_until_permitted(lambda: copy(wanted))}
    except Exception as error:  # CloudFormation needs a response
        failure = f"s3://{wanted['BucketName']}/{wanted['Key']} could not be written: {error}"
    respond(event, failure=failure, physical_id=f"{wanted['BucketName']}/{wanted['Key']}", data=data)


def copy(wanted: dict[str, str]) -> str:
    """Copy the script. Returns the version of the copy. Raises ValueError if its content has another digest."""
    import boto3

    s3: Any = boto3.client("s3")
    content: bytes = s3.get_object(Bucket=wanted["SourceBucket"], Key=wanted["SourceKey"])["Body"].read()
    digest = hashlib.sha256(content).hexdigest()
    if digest != wanted["Sha256"]:
        raise ValueError(f"its SHA-256 is {digest}, not {wanted['Sha256']}")
    return s3.put_object(Bucket=wanted["BucketName"], Key=wanted["Key"], Body=content)["VersionId"]
