"""The launch template version of nodes over the deployments of a cluster."""

from collections.abc import Collection
from typing import Any

import pytest

from trainium_runtime.launch_template_version import VersionChoice, choose

SCRIPT = "arn:aws:s3:::assets/one.sh"


def offer(latest: int, **changed: Any) -> dict[str, Any]:
    return {
        "LaunchTemplateId": "lt-0123456789abcdef0",
        "LatestVersion": str(latest),
        "Image": "ami-0aaaaaaaaaaaaaaaa",
        "ImageSetting": "",
        "NodeScript": SCRIPT,
        "Settings": {"instance_type": "trn1.32xlarge"},
        "Uses": {"cache_url": "s3://cache/x"},
        **changed,
    }


def chosen(*offers: dict[str, Any], rollbacks: Collection[str] = ()) -> list[str]:
    """The version after each deployment.

    Args:
        offers: The properties of the resource in each deployment.
        rollbacks: The LatestVersion of the deployments that are rollbacks.
    """
    versions, remembered = list[str](), None
    for offered in offers:
        choice, remembered = choose(offered, remembered, rolling_back=offered["LatestVersion"] in rollbacks)
        versions.append(choice.version)
    return versions


def test_template_change_without_effect_keeps_the_nodes() -> None:
    assert chosen(offer(1), offer(2, NodeScript="arn:aws:s3:::assets/two.sh"), offer(3)) == ["1", "1", "1"]


def test_unchanged_nodes_keep_their_script() -> None:
    _, remembered = choose(offer(1), None)
    kept, _ = choose(offer(2, NodeScript="arn:aws:s3:::assets/two.sh"), remembered)
    assert kept.script == SCRIPT


@pytest.mark.parametrize(
    "changed",
    [
        {"Settings": {"instance_type": "trn1n.32xlarge"}},
        {"Uses": {"cache_url": "s3://another/x"}},
        {"LaunchTemplateId": "lt-0fedcba9876543210"},
        {"Image": "ami-0bbbbbbbbbbbbbbbb", "ImageSetting": "ami-0bbbbbbbbbbbbbbbb"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_change_that_requires_new_nodes_selects_the_newest(changed: dict[str, Any]) -> None:
    assert chosen(offer(1), offer(2, **changed)) == ["1", "2"]


def test_new_image_behind_a_parameter_replaces_nodes_once_the_plan_names_it() -> None:
    moved = {"Image": "ami-0bbbbbbbbbbbbbbbb"}
    assert chosen(offer(1), offer(2, **moved), offer(3, **moved, ImageSetting=moved["Image"])) == ["1", "1", "3"]


def test_pin_of_the_current_image_replaces_no_nodes() -> None:
    pinned = {"ImageSetting": "ami-0aaaaaaaaaaaaaaaa"}
    assert chosen(offer(1), offer(1, **pinned), offer(2, Image="ami-0bbbbbbbbbbbbbbbb")) == ["1", "1", "2"]


def test_rollback_selects_the_previous_version() -> None:
    bigger = {"Settings": {"root_volume_gib": "600"}}
    offers = offer(1), offer(2), offer(3, **bigger), offer(4)
    assert chosen(*offers, rollbacks={"4"}) == ["1", "1", "3", "1"]


def test_deployment_of_earlier_settings_selects_the_newest() -> None:
    bigger = {"Settings": {"root_volume_gib": "600"}}
    assert chosen(offer(1), offer(2, **bigger), offer(3, NodeScript="arn:aws:s3:::assets/two.sh")) == ["1", "2", "3"]


def test_rolled_back_settings_get_a_new_version() -> None:
    bigger = {"Settings": {"root_volume_gib": "600"}}
    offers = offer(1), offer(2, **bigger), offer(3), offer(4, **bigger)
    assert chosen(*offers, rollbacks={"3"}) == ["1", "2", "1", "4"]


@pytest.mark.parametrize("text", ["", "fleet/version", "1|2|3"])
def test_malformed_selection_counts_as_none(text: str) -> None:
    assert VersionChoice.from_text(text) is None
    assert choose(offer(7), text)[0].version == "7"


def test_physical_id_fits_into_the_limit_of_cloudformation() -> None:
    long = "arn:aws:s3:::cdk-hnb659fds-assets-123456789012-ap-southeast-4/" + "f" * 64 + ".sh"
    _, first = choose(offer(123456, NodeScript=long, ImageSetting="/" + "x" * 1000), None)
    _, second = choose(offer(123457, NodeScript=long, Uses={}), first)
    assert len(second) <= 1024
