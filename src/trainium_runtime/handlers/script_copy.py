"""Custom::TrnScriptCopy: copies a script of the app's assets into a versioned bucket of the stack.

Its attribute `VersionId` is the version that nodes download. Its deletion keeps all versions: they are deleted with the
bucket.
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
        failure = f"the script could not be copied to s3://{properties['BucketName']}/{properties['Key']}: {error}"
    respond(event, failure=failure, physical_id=f"{properties['BucketName']}/{properties['Key']}", data=data)


def copy(properties: dict[str, str]) -> str:
    """Copy the script.

    Returns:
        The version ID of the copy.

    Raises:
        ValueError: The SHA-256 of the asset is not the one in the properties.
        ClientError: AWS refused a request.
    """
    import boto3

    s3: Any = boto3.client("s3")
    content: bytes = s3.get_object(Bucket=properties["SourceBucket"], Key=properties["SourceKey"])["Body"].read()
    digest = hashlib.sha256(content).hexdigest()
    if digest != properties["Sha256"]:
        raise ValueError(f"the SHA-256 of the asset is {digest}, not {properties['Sha256']}")
    return s3.put_object(Bucket=properties["BucketName"], Key=properties["Key"], Body=content)["VersionId"]
