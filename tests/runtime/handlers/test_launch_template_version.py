"""Custom::TrnLaunchTemplateVersion: its responses."""

from typing import Any

import pytest

from tests.runtime.handlers.conftest import CloudFormation
from trainium_runtime.handlers import launch_template_version

OFFER = {
    "LaunchTemplateId": "lt-0123456789abcdef0",
    "LatestVersion": "1",
    "Image": "ami-0aaaaaaaaaaaaaaaa",
    "ImageSetting": "",
    "NodeScript": "arn:aws:s3:::assets/one.sh",
    "Settings": {"instance_type": "trn1.32xlarge"},
    "Uses": {"cache_url": "s3://cache/x"},
}


def send_event(
    cloudformation: CloudFormation, kind: str, physical_id: str | None = None, **offered: Any
) -> dict[str, Any]:
    launch_template_version.handle(cloudformation.event(kind, OFFER | offered, physical_id), None)
    return cloudformation.responses[-1]


def test_kept_version_reports_the_newest(cloudformation: CloudFormation) -> None:
    first = send_event(cloudformation, "Create")
    assert first["Data"]["Summary"] == "version 1 of lt-0123456789abcdef0 (the newest)"
    later = send_event(cloudformation, "Update", first["PhysicalResourceId"], LatestVersion="2")
    assert later["Data"] == {
        "Version": "1",
        "NodeScript": OFFER["NodeScript"],
        "Summary": "version 1 of lt-0123456789abcdef0 (kept; the newest is 2)",
    }
    assert later["PhysicalResourceId"] == first["PhysicalResourceId"]


@pytest.mark.parametrize(("rolling_back", "version"), [(True, "1"), (False, "3")])
def test_earlier_version_is_used_only_in_a_rollback(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation, rolling_back: bool, version: str
) -> None:
    received = dict[str, Any]()

    def answer(stack_id: str, *, unknown: bool) -> bool:
        received.update(stack_id=stack_id, unknown=unknown)
        return rolling_back

    monkeypatch.setattr(launch_template_version, "is_rolling_back", answer)
    first = send_event(cloudformation, "Create")
    second = send_event(cloudformation, "Update", first["PhysicalResourceId"], LatestVersion="2", Settings={})
    third = send_event(cloudformation, "Update", second["PhysicalResourceId"], LatestVersion="3")
    assert third["Data"]["Version"] == version
    assert received["unknown"]


def test_deletion_gets_a_response(cloudformation: CloudFormation) -> None:
    assert send_event(cloudformation, "Delete", "any")["Status"] == "SUCCESS"


@pytest.mark.parametrize("missing", ["Settings", "LatestVersion"])
def test_error_is_a_failed_response(cloudformation: CloudFormation, missing: str) -> None:
    offered = {name: value for name, value in OFFER.items() if name != missing}
    launch_template_version.handle(cloudformation.event("Create", offered), None)
    assert cloudformation.response["Status"] == "FAILED"
    assert missing in cloudformation.response["Reason"]
