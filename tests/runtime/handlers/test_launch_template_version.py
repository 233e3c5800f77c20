"""Custom::TrnLaunchTemplateVersion: its results."""

from typing import Any

import pytest

from trainium_runtime.handlers import launch_template_version
from trainium_runtime.handlers.custom_resource import Result

OFFER = {
    "LaunchTemplateId": "lt-0123456789abcdef0",
    "LatestVersion": "1",
    "Image": "ami-0aaaaaaaaaaaaaaaa",
    "ImageSetting": "",
    "NodeScript": "arn:aws:s3:::assets/one.sh",
    "Settings": {"instance_type": "trn1.32xlarge"},
    "Uses": {"cache_url": "s3://cache/x"},
}


def provide(before: Result | None = None, **offered: Any) -> Result:
    """Create the resource, or update it after the earlier result."""
    event = {"RequestType": "Create", "StackId": "stack-1", "ResourceProperties": OFFER | offered}
    if before:
        event |= {"RequestType": "Update", "PhysicalResourceId": before.physical_id}
    return launch_template_version.provide(event)


def test_kept_version_reports_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_template_version, "is_rolling_back", lambda *_, **__: False)
    first = provide()
    assert first.data["Summary"] == "version 1 of lt-0123456789abcdef0 (the newest)"
    later = provide(first, LatestVersion="2")
    assert later.data == {
        "Version": "1",
        "NodeScript": OFFER["NodeScript"],
        "Summary": "version 1 of lt-0123456789abcdef0 (kept; the newest is 2)",
    }
    assert later.physical_id == first.physical_id


@pytest.mark.parametrize(("rolling_back", "version"), [(True, "1"), (False, "3")])
def test_earlier_version_is_used_only_in_a_rollback(
    monkeypatch: pytest.MonkeyPatch, rolling_back: bool, version: str
) -> None:
    received = dict[str, Any]()

    def answer(stack_id: str, *, unknown: bool) -> bool:
        received.update(stack_id=stack_id, unknown=unknown)
        return rolling_back

    monkeypatch.setattr(launch_template_version, "is_rolling_back", answer)
    second = provide(provide(), LatestVersion="2", Settings={})
    assert provide(second, LatestVersion="3").data["Version"] == version
    assert received["unknown"]
