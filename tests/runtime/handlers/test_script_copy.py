"""Custom::TrnScriptCopy against moto's S3."""

import hashlib
from typing import Any

import pytest

from tests.runtime.handlers.conftest import REGION
from tests.runtime.handlers.fleet import client
from trainium_runtime.handlers import script_copy

ASSETS, BUCKET, KEY = "assets", "scripts", "scripts/verification.sh"


@pytest.fixture(autouse=True)
def s3() -> Any:
    s3 = client("s3")
    for name in (ASSETS, BUCKET):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return s3


def copy(s3: Any, text: str, *, digest: str | None = None) -> str:
    """Copy a script. Returns the version of the copy."""
    s3.put_object(Bucket=ASSETS, Key="asset.sh", Body=text.encode())
    properties = {
        "SourceBucket": ASSETS,
        "SourceKey": "asset.sh",
        "BucketName": BUCKET,
        "Key": KEY,
        "Sha256": digest or hashlib.sha256(text.encode()).hexdigest(),
    }
    return script_copy.provide({"ResourceProperties": properties}).data["VersionId"]


def test_copy_returns_its_version(s3: Any) -> None:
    version = copy(s3, "echo ä\n")
    assert s3.get_object(Bucket=BUCKET, Key=KEY, VersionId=version)["Body"].read().decode() == "echo ä\n"


def test_changed_script_keeps_its_earlier_version(s3: Any) -> None:
    first, second = copy(s3, "1"), copy(s3, "2")
    assert first != second
    assert s3.get_object(Bucket=BUCKET, Key=KEY, VersionId=first)["Body"].read() == b"1"


def test_other_content_is_not_copied(s3: Any) -> None:
    with pytest.raises(RuntimeError, match=f"not be copied to s3://{BUCKET}/{KEY}: the SHA-256 of the asset is"):
        copy(s3, "1", digest="0" * 64)
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
