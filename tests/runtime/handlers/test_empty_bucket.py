"""Custom::TrnBucketContent against moto's S3."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from tests.runtime.handlers.conftest import REGION, CloudFormation, PartialClient
from tests.runtime.handlers.fleet import client
from trainium_runtime.handlers import empty_bucket, permissions

BUCKET = "records"


@pytest.fixture(autouse=True)
def s3() -> Any:
    s3 = client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return s3


def allow_emptying(s3: Any, value: str = "true") -> None:
    tags = [{"Key": empty_bucket.EMPTY_AT_DELETE_TAG, "Value": value}, {"Key": "trn:cluster", "Value": "trn-pilot"}]
    s3.put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})


def put(s3: Any, count: int) -> None:
    for number in range(count):
        s3.put_object(Bucket=BUCKET, Key=f"nodes/{number}", Body=b"{}")


def left(s3: Any) -> int:
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET)
    return sum(len(page.get("Versions", [])) + len(page.get("DeleteMarkers", [])) for page in pages)


def run(cloudformation: CloudFormation, request_type: str) -> dict[str, Any]:
    physical_id = None if request_type == "Create" else f"{BUCKET}/content"
    empty_bucket.handle(cloudformation.event(request_type, {"BucketName": BUCKET}, physical_id), None)
    return cloudformation.response


def test_bucket_with_the_tag_is_emptied_at_delete(s3: Any, cloudformation: CloudFormation) -> None:
    allow_emptying(s3)
    put(s3, 3)
    assert run(cloudformation, "Delete")["Status"] == "SUCCESS"
    assert left(s3) == 0


def test_more_objects_than_one_request_deletes_are_deleted(s3: Any, cloudformation: CloudFormation) -> None:
    allow_emptying(s3)
    for number in range(1001):
        # Faster than 1,001 requests.
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(BUCKET, f"nodes/{number}", b"{}")
    assert left(s3) == 1001
    assert run(cloudformation, "Delete")["Status"] == "SUCCESS"
    assert left(s3) == 0


def test_versions_and_delete_markers_are_deleted(s3: Any, cloudformation: CloudFormation) -> None:
    allow_emptying(s3)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    put(s3, 2)
    put(s3, 2)
    s3.delete_object(Bucket=BUCKET, Key="nodes/0")
    assert left(s3) == 5
    assert run(cloudformation, "Delete")["Status"] == "SUCCESS"
    assert left(s3) == 0


@pytest.mark.parametrize("value", [None, "false"])
def test_bucket_without_the_tag_keeps_its_objects(s3: Any, cloudformation: CloudFormation, value: str | None) -> None:
    if value:
        allow_emptying(s3, value)
    put(s3, 2)
    assert run(cloudformation, "Delete")["Status"] == "SUCCESS"
    assert left(s3) == 2


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_nothing_is_deleted_before_delete(s3: Any, cloudformation: CloudFormation, request_type: str) -> None:
    allow_emptying(s3)
    put(s3, 2)
    assert run(cloudformation, request_type)["Status"] == "SUCCESS"
    assert left(s3) == 2


def test_missing_bucket_counts_as_empty(s3: Any, cloudformation: CloudFormation) -> None:
    s3.delete_bucket(Bucket=BUCKET)
    assert run(cloudformation, "Delete")["Status"] == "SUCCESS"


def test_object_that_s3_does_not_delete_is_named(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_emptying(s3)
    put(s3, 1)
    refused = {"Errors": [{"Key": "nodes/0", "Code": "AccessDenied", "Message": "Access Denied"}]}
    monkeypatch.setattr(boto3, "client", lambda _service: PartialClient(s3, delete_objects=refused))
    response = run(cloudformation, "Delete")
    assert response["Status"] == "FAILED"
    assert response["Reason"] == "bucket records could not be emptied: nodes/0: Access Denied (objects not deleted: 1)"


def test_denied_read_fails_the_delete_with_error_of_aws(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 0)
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "GetBucketTagging")
    monkeypatch.setattr(boto3, "client", lambda _service: PartialClient(s3, get_bucket_tagging=denied))
    response = run(cloudformation, "Delete")
    assert response["Status"] == "FAILED"
    assert "AccessDenied" in response["Reason"]
