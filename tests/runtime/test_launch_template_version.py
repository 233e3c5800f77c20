"""Which version of a launch template nodes are launched from, over the deployments of a cluster."""

from collections.abc import Collection
from typing import Any

import pytest

from trainium_runtime.launch_template_version import Choice, choose

SCRIPT = "arn:aws:s3:::assets/one.sh"


def offer(latest: int, **changed: Any) -> dict[str, Any]:
    """The properties of the resource, as CloudFormation hands them over."""
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
    """The version after each of some deployments. rollbacks: the newest versions that rollbacks offer."""
    versions, remembered = list[str](), None
    for one in offers:
        choice, remembered = choose(one, remembered, rolling_back=one["LatestVersion"] in rollbacks)
        versions.append(choice.version)
    return versions


def test_a_launch_template_that_changed_in_nothing_that_matters_keeps_the_nodes() -> None:
    assert chosen(offer(1), offer(2, NodeScript="arn:aws:s3:::assets/two.sh"), offer(3)) == ["1", "1", "1"]


def test_nodes_that_stay_keep_their_script() -> None:
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
def test_what_needs_other_nodes_takes_the_newest(changed: dict[str, Any]) -> None:
    assert chosen(offer(1), offer(2, **changed)) == ["1", "2"]


def test_an_image_parameter_that_moved_on_replaces_no_node_until_another_is_set() -> None:
    moved = {"Image": "ami-0bbbbbbbbbbbbbbbb"}
    assert chosen(offer(1), offer(2, **moved), offer(3, **moved, ImageSetting=moved["Image"])) == ["1", "1", "3"]


def test_pinning_the_image_that_nodes_have_replaces_none() -> None:
    pinned = {"ImageSetting": "ami-0aaaaaaaaaaaaaaaa"}
    assert chosen(offer(1), offer(1, **pinned), offer(2, Image="ami-0bbbbbbbbbbbbbbbb")) == ["1", "1", "2"]


def test_a_rollback_comes_to_the_version_that_ran_before() -> None:
    bigger = {"Settings": {"root_volume_gib": "600"}}
    offers = offer(1), offer(2), offer(3, **bigger), offer(4)
    assert chosen(*offers, rollbacks={"4"}) == ["1", "1", "3", "1"]


def test_a_deployment_that_goes_back_to_what_was_before_takes_the_newest() -> None:
    bigger = {"Settings": {"root_volume_gib": "600"}}
    assert chosen(offer(1), offer(2, **bigger), offer(3, NodeScript="arn:aws:s3:::assets/two.sh")) == ["1", "2", "3"]


def test_what_was_rolled_back_is_not_tried_again_as_it_was() -> None:
    bigger = {"Settings": {"root_volume_gib": "600"}}
    offers = offer(1), offer(2, **bigger), offer(3), offer(4, **bigger)
    assert chosen(*offers, rollbacks={"3"}) == ["1", "2", "1", "4"]


@pytest.mark.parametrize("text", ["", "fleet/version", "1|2|3"])
def test_what_is_no_choice_is_taken_for_none(text: str) -> None:
    assert Choice.from_text(text) is None
    assert choose(offer(7), text)[0].version == "7"


def test_what_cloudformation_remembers_is_short_enough() -> None:
    long = "arn:aws:s3:::cdk-hnb659fds-assets-123456789012-ap-southeast-4/" + "f" * 64 + ".sh"
    _, first = choose(offer(123456, NodeScript=long, ImageSetting="/" + "x" * 1000), None)
    _, second = choose(offer(123457, NodeScript=long, Uses={}), first)
    assert len(second) <= 1024
