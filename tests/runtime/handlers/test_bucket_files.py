"""Custom::TrnBucketFiles against moto's S3."""

from typing import Any

import pytest

from tests.runtime.handlers.conftest import REGION, CloudFormation
from tests.runtime.handlers.fleet import client
from trainium_runtime.handlers import bucket_files

BUCKET = "sagemaker-scripts"


@pytest.fixture(autouse=True)
def s3() -> Any:
    s3 = client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return s3


def run(
    cloudformation: CloudFormation, request_type: str, files: dict[str, str], before: dict[str, str] | None = None
) -> dict[str, Any]:
    event = cloudformation.event(request_type, {"BucketName": BUCKET, "Prefix": "lifecycle", "Files": files})
    if before is not None:
        event["OldResourceProperties"] = {"BucketName": BUCKET, "Prefix": "lifecycle", "Files": before}
    bucket_files.handle(event, None)
    return cloudformation.responses[-1]


def content(s3: Any) -> dict[str, str]:
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
    return {key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() for key in keys}


def test_files_are_written_unchanged(s3: Any, cloudformation: CloudFormation) -> None:
    assert run(cloudformation, "Create", {"a.sh": "echo ä\n"})["Status"] == "SUCCESS"
    assert content(s3) == {"lifecycle/a.sh": "echo ä\n"}


def test_update_rewrites_files_and_deletes_removed_ones(s3: Any, cloudformation: CloudFormation) -> None:
    s3.put_object(Bucket=BUCKET, Key="lifecycle/other.sh", Body=b"kept")
    run(cloudformation, "Create", {"a.sh": "1", "b.sh": "1"})
    run(cloudformation, "Update", {"a.sh": "2"}, {"a.sh": "1", "b.sh": "1"})
    assert content(s3) == {"lifecycle/a.sh": "2", "lifecycle/other.sh": "kept"}


def test_deletion_removes_only_its_own_files(s3: Any, cloudformation: CloudFormation) -> None:
    s3.put_object(Bucket=BUCKET, Key="lifecycle/other.sh", Body=b"kept")
    run(cloudformation, "Create", {"a.sh": "1"})
    assert run(cloudformation, "Delete", {"a.sh": "1"})["Status"] == "SUCCESS"
    assert content(s3) == {"lifecycle/other.sh": "kept"}


def test_failure_is_reported_with_the_place(s3: Any, cloudformation: CloudFormation) -> None:
    s3.delete_bucket(Bucket=BUCKET)
    response = run(cloudformation, "Create", {"a.sh": "1"})
    assert response["Status"] == "FAILED"
    assert response["Reason"].startswith(f"the files of s3://{BUCKET}/lifecycle could not be updated: ")


def test_files_of_a_missing_bucket_count_as_deleted(s3: Any, cloudformation: CloudFormation) -> None:
    s3.delete_bucket(Bucket=BUCKET)
    assert run(cloudformation, "Delete", {"a.sh": "1"})["Status"] == "SUCCESS"
