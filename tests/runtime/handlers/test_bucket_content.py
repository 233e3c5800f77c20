"""Custom::TrnBucketContent against moto's S3."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import REGION, PartialClient
from tests.runtime.handlers.fleet import client
from trainium_runtime.handlers import bucket_content, permissions

BUCKET = "records"


@pytest.fixture(autouse=True)
def s3() -> Any:
    s3 = client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return s3


def allow_emptying(s3: Any, value: str = "true") -> None:
    tags = [{"Key": bucket_content.EMPTY_AT_DELETE_TAG, "Value": value}, {"Key": "trn:cluster", "Value": "trn-pilot"}]
    s3.put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})


def put(s3: Any, count: int) -> None:
    for number in range(count):
        s3.put_object(Bucket=BUCKET, Key=f"nodes/{number}", Body=b"{}")


def left(s3: Any) -> int:
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET)
    return sum(len(page.get("Versions", [])) + len(page.get("DeleteMarkers", [])) for page in pages)


def delete() -> None:
    bucket_content.delete({"ResourceProperties": {"BucketName": BUCKET}})


def test_bucket_with_the_tag_is_emptied_at_delete(s3: Any) -> None:
    allow_emptying(s3)
    put(s3, 3)
    delete()
    assert left(s3) == 0


def test_more_objects_than_one_request_deletes_are_deleted(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_emptying(s3)
    put(s3, 5)
    of_two = PartialClient(s3, list_object_versions=lambda **request: s3.list_object_versions(**request, MaxKeys=2))
    monkeypatch.setattr(boto3, "client", lambda _service: of_two)
    delete()
    assert left(s3) == 0


def test_versions_and_delete_markers_are_deleted(s3: Any) -> None:
    allow_emptying(s3)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    put(s3, 2)
    put(s3, 2)
    s3.delete_object(Bucket=BUCKET, Key="nodes/0")
    assert left(s3) == 5
    delete()
    assert left(s3) == 0


@pytest.mark.parametrize("value", [None, "false"])
def test_bucket_without_the_tag_keeps_its_objects(s3: Any, value: str | None) -> None:
    if value:
        allow_emptying(s3, value)
    put(s3, 2)
    delete()
    assert left(s3) == 2


def test_missing_bucket_counts_as_empty(s3: Any) -> None:
    s3.delete_bucket(Bucket=BUCKET)
    delete()


def test_object_that_s3_does_not_delete_is_named(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_emptying(s3)
    put(s3, 1)
    refused = {"Errors": [{"Key": "nodes/0", "Code": "AccessDenied", "Message": "Access Denied"}]}
    monkeypatch.setattr(boto3, "client", lambda _service: PartialClient(s3, delete_objects=refused))
    with pytest.raises(RuntimeError, match=r"emptied: nodes/0: Access Denied \(objects not deleted: 1\)"):
        delete()


def test_denied_read_fails_the_delete_with_error_of_aws(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 0)
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "GetBucketTagging")
    monkeypatch.setattr(boto3, "client", lambda _service: PartialClient(s3, get_bucket_tagging=denied))
    with pytest.raises(RuntimeError, match=r"bucket records could not be emptied: .*AccessDenied"):
        delete()
