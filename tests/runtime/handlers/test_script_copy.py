"""Custom::TrnScriptCopy against moto's S3."""

import hashlib
from typing import Any

import pytest

from tests.runtime.handlers.conftest import REGION, CloudFormation
from tests.runtime.handlers.fleet import client
from trainium_runtime.handlers import script_copy

ASSETS, BUCKET, KEY = "assets", "scripts", "scripts/proof.sh"


@pytest.fixture(autouse=True)
def s3() -> Any:
    s3 = client("s3")
    for name in (ASSETS, BUCKET):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return s3


def run(
    cloudformation: CloudFormation, s3: Any, text: str, *, request_type: str = "Create", digest: str | None = None
) -> dict[str, Any]:
    s3.put_object(Bucket=ASSETS, Key="asset.sh", Body=text.encode())
    properties = {
        "SourceBucket": ASSETS,
        "SourceKey": "asset.sh",
        "BucketName": BUCKET,
        "Key": KEY,
        "Sha256": digest or hashlib.sha256(text.encode()).hexdigest(),
    }
    script_copy.handle(cloudformation.event(request_type, properties), None)
    return cloudformation.responses[-1]


def test_copy_returns_its_version(s3: Any, cloudformation: CloudFormation) -> None:
    response = run(cloudformation, s3, "echo ä\n")
    assert response["Status"] == "SUCCESS"
    version = response["Data"]["VersionId"]
    assert s3.get_object(Bucket=BUCKET, Key=KEY, VersionId=version)["Body"].read().decode() == "echo ä\n"


def test_changed_script_keeps_its_earlier_version(s3: Any, cloudformation: CloudFormation) -> None:
    first = run(cloudformation, s3, "1")["Data"]["VersionId"]
    second = run(cloudformation, s3, "2", request_type="Update")["Data"]["VersionId"]
    assert first != second
    assert s3.get_object(Bucket=BUCKET, Key=KEY, VersionId=first)["Body"].read() == b"1"


def test_other_content_is_not_copied(s3: Any, cloudformation: CloudFormation) -> None:
    response = run(cloudformation, s3, "1", digest="0" * 64)
    assert (response["Status"], s3.list_objects_v2(Bucket=BUCKET)["KeyCount"]) == ("FAILED", 0)
    assert f"could not be copied to s3://{BUCKET}/{KEY}: the SHA-256 of the asset is" in response["Reason"]


def test_deletion_keeps_the_script(s3: Any, cloudformation: CloudFormation) -> None:
    run(cloudformation, s3, "1")
    assert run(cloudformation, s3, "1", request_type="Delete")["Status"] == "SUCCESS"
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 1
