"""The check of AWS PCS: room for a cluster, its region, and the image of its nodes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.aws_stubs import stubbed
from tests.core.fake_account import IMAGE, FakeAccount
from tests.core.plans import from_settings
from trainium_core.preflight.finding import Finding
from trainium_core.preflight.runner import preflight

OWN = {"pcs_ami": IMAGE.image_id}


def findings(account: FakeAccount, **settings: Any) -> dict[str, Finding]:
    plan = from_settings(nodes=2, stacks="pcs", **settings)
    return {finding.check: finding for finding in preflight(plan, account)}


def of_pcs(account: FakeAccount, **settings: Any) -> Finding:
    return findings(account, **settings)["pcs"]


def test_pcs_has_the_checks_of_the_cluster_except_image() -> None:
    found = findings(FakeAccount(volume_key="a key"))
    assert {"quota", "offering", "pcs", "network", "limits", "volumes"} <= found.keys()
    assert "image" not in found
    assert found["pcs"].outcome == "pass"


def test_full_region_is_unknown_unless_it_has_this_cluster() -> None:
    others = [f"other-{number}" for number in range(5)]
    assert of_pcs(FakeAccount(clusters_of_pcs=others)).outcome == "unknown"
    assert of_pcs(FakeAccount(clusters_of_pcs=[*others[1:], "trn-pilot"])).outcome == "pass"


def test_pcs_that_does_not_answer_is_unknown() -> None:
    assert of_pcs(FakeAccount(unavailable={"pcs"})).outcome == "unknown"


def test_own_image_is_a_warning_because_its_content_is_not_visible() -> None:
    own = replace(IMAGE, owner="123456789012", name="golden")
    assert of_pcs(FakeAccount(found_image=own), **OWN).outcome == "warn"


def test_own_image_that_is_a_neuron_dlami_fails_because_it_lacks_slurm() -> None:
    finding = of_pcs(FakeAccount(), **OWN)
    assert finding.outcome == "fail"
    assert "neither the AWS PCS agent nor Slurm" in finding.found


@pytest.mark.parametrize(
    "change",
    [
        {"state": "pending"},
        {"architecture": "arm64"},
        {"root_device_name": "/dev/xvda"},
        {"root_volume_gib": 4000},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("settings", [{}, OWN], ids=["recipe", "own"])
def test_image_that_nodes_cannot_boot_fails(settings: dict[str, Any], change: dict[str, Any]) -> None:
    account = FakeAccount(found_image=replace(IMAGE, **change))
    assert of_pcs(account, **settings).outcome == "fail"


@pytest.mark.parametrize("settings", [{}, OWN], ids=["recipe", "own"])
def test_absent_image_fails(settings: dict[str, Any]) -> None:
    assert of_pcs(FakeAccount(found_image=None, parameter_value=None), **settings).outcome == "fail"


@pytest.mark.usefixtures("made_up_credentials")
def test_clusters_are_listed_by_name() -> None:
    account, stub = stubbed("pcs")
    cluster = {
        "name": "trn-pilot",
        "id": "pcs_1",
        "arn": "arn:aws:pcs:us-west-2:123456789012:cluster/pcs_1",
        "createdAt": 0,
        "modifiedAt": 0,
        "status": "ACTIVE",
    }
    responses: Any = stub
    responses.add_response("list_clusters", {"clusters": [cluster]}, {})
    assert account.resource_use.pcs_clusters() == ["trn-pilot"]
