"""Custom::TrnScriptCopy: copies a script of the app's assets into a versioned bucket of the stack.

Its attribute `VersionId` is the version that nodes download. Its deletion keeps all versions: they are deleted with the
bucket.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from .custom_resource import Result, explained
from .permissions import retry_until_permitted

RESOURCE_TYPE = "Custom::TrnScriptCopy"


def provide(event: Mapping[str, Any]) -> Result:
    properties = event["ResourceProperties"]
    target = f"{properties['BucketName']}/{properties['Key']}"
    with explained(f"the script could not be copied to s3://{target}"):
        version = retry_until_permitted(lambda: _copy(properties))
    return Result(physical_id=target, data={"VersionId": version})


def _copy(properties: Mapping[str, str]) -> str:
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
