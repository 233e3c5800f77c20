"""The provider's responses to CloudFormation."""

import pytest

from tests.runtime.handlers.conftest import CloudFormation
from trainium_runtime.handlers import provider


def send(
    cloudformation: CloudFormation, request_type: str, bucket: str, kind: str = "Custom::TrnBucketContent"
) -> None:
    event = cloudformation.event(request_type, {"BucketName": bucket}, "before")
    provider.handle({**event, "ResourceType": kind}, None)


def test_result_is_sent(cloudformation: CloudFormation) -> None:
    send(cloudformation, "Create", "records")
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["PhysicalResourceId"] == "records/content"


@pytest.mark.parametrize("bucket", ["not-deployed", "NotAName!"])
def test_deletion_keeps_the_physical_id(cloudformation: CloudFormation, bucket: str) -> None:
    send(cloudformation, "Delete", bucket)
    assert cloudformation.response["Status"] == ("SUCCESS" if bucket == "not-deployed" else "FAILED")
    assert cloudformation.response["PhysicalResourceId"] == "before"


def test_type_without_deletion_is_deleted(cloudformation: CloudFormation) -> None:
    send(cloudformation, "Delete", "records", "Custom::TrnNodeSubnet")
    assert cloudformation.response["Status"] == "SUCCESS"


def test_error_is_a_failure_with_its_reason(cloudformation: CloudFormation) -> None:
    send(cloudformation, "Update", "records", "Custom::TrnLaunchTemplateVersion")
    assert cloudformation.response["Status"] == "FAILED"
    assert "no version of the launch template could be selected" in cloudformation.response["Reason"]
