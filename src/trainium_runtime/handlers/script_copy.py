"""Custom::TrnScriptCopy: copies a script of the app's assets into a versioned bucket of the stack.

Its attribute `VersionId` is the version that nodes download. The deletion of the bucket removes all versions.
"""

import hashlib
from typing import Any

from .custom_resource import respond
from .permissions import retry_until_permitted


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    properties = event["ResourceProperties"]
    failure, data = None, None
    try:
        if event["RequestType"] != "Delete":
            data = {"VersionId": retry_until_permitted(lambda: copy(properties))}
    except Exception as error:  # CloudFormation needs a response
        failure = f"s3://{properties['BucketName']}/{properties['Key']} could not be written: {error}"
    respond(event, failure=failure, physical_id=f"{properties['BucketName']}/{properties['Key']}", data=data)


def copy(properties: dict[str, str]) -> str:
    """Copy the script.

    Returns:
        The version of the copy.

    Raises:
        ValueError: The content has another digest.
    """
    import boto3

    s3: Any = boto3.client("s3")
    content: bytes = s3.get_object(Bucket=properties["SourceBucket"], Key=properties["SourceKey"])["Body"].read()
    digest = hashlib.sha256(content).hexdigest()
    if digest != properties["Sha256"]:
        raise ValueError(f"its SHA-256 is {digest}, not {properties['Sha256']}")
    return s3.put_object(Bucket=properties["BucketName"], Key=properties["Key"], Body=content)["VersionId"]
