"""Settings of the nodes' software, checks, recovery and file systems: what is read, and what is refused."""

from typing import Any

import pytest

from tests.core.plans import from_settings, the_problem
from trainium_core.facts import facts
from trainium_core.node_checks import NODE_CHECKS

BARE = facts()["bare_images"]["parameters"]["Ubuntu 24.04"]


@pytest.mark.parametrize(
    "given", ["nvme,time-sync", " nvme , time-sync,", ["nvme", "time-sync"], ["nvme"] * 2 + ["time-sync"]]
)
def test_suppressed_checks_are_names(given: Any) -> None:
    assert from_settings(suppress_checks=given).suppress_checks == ("nvme", "time-sync")


def test_a_misspelt_check_is_told_its_nearest_name() -> None:
    problem = the_problem(suppress_checks="selftest")
    assert problem.fix == "'selftest' is none of them; write self-test"


@pytest.mark.parametrize("got", [7, {"nvme": True}])
def test_suppressed_checks_that_are_no_list_are_refused(got: Any) -> None:
    assert all(name in the_problem(suppress_checks=got).allowed for name in NODE_CHECKS)


def test_installing_on_a_node_without_internet_is_refused() -> None:
    problem = the_problem(neuron_software="install", ami=BARE)
    assert (problem.key, "trn:egress" in problem.fix) == ("neuron_software", True)


def test_installing_on_an_image_that_has_everything_is_refused() -> None:
    problem = the_problem(neuron_software="install", egress="nat-gateway")
    assert problem.key == "ami"
    assert BARE in problem.fix


@pytest.mark.parametrize("ami", [BARE, "ami-0123456789abcdef0"])
def test_installing_on_a_bare_image_with_internet_is_accepted(ami: str) -> None:
    assert from_settings(neuron_software="install", egress="nat-gateway", ami=ami).ami == ami


def test_replacements_without_recovery_are_refused() -> None:
    assert the_problem(node_recovery="off", node_replacements=5).key == "node_replacements"


@pytest.mark.parametrize(
    ("given", "read"), [("1200", 1200), (4800, 4800), ("fs-0123456789abcdef0", "fs-0123456789abcdef0")]
)
def test_a_lustre_file_system_is_new_or_an_existing_one(given: Any, read: Any) -> None:
    mount_name = {"fsx_lustre_mount_name": "abcdefgh"} if isinstance(read, str) else {}
    assert from_settings(fsx_lustre=given, **mount_name).fsx_lustre == read


@pytest.mark.parametrize("got", ["0", 1300, "3600", "fs-xyz", "-2400", ""])
def test_a_lustre_size_that_fsx_would_refuse_is_refused(got: Any) -> None:
    assert "1200, or a multiple of 2400" in the_problem(fsx_lustre=got).allowed


def test_a_lustre_file_system_of_your_own_needs_its_mount_name() -> None:
    problem = the_problem(fsx_lustre="fs-0123456789abcdef0")
    assert "describe-file-systems --region us-west-2 --file-system-ids fs-0123456789abcdef0" in problem.fix


@pytest.mark.parametrize("file_system", [{}, {"fsx_lustre": 1200}])
def test_a_mount_name_without_a_file_system_of_your_own_is_refused(file_system: dict[str, Any]) -> None:
    assert the_problem(fsx_lustre_mount_name="abcdefgh", **file_system).key == "fsx_lustre_mount_name"


@pytest.mark.parametrize("file_system", [{}, {"efs": "fs-0123456789abcdef0"}])
def test_retaining_a_file_system_that_is_not_made_is_refused(file_system: dict[str, Any]) -> None:
    assert the_problem(file_systems_at_destroy="retain", **file_system).key == "file_systems_at_destroy"


@pytest.mark.parametrize("file_system", [{"fsx_lustre": 1200}, {"efs": "new"}])
def test_a_new_file_system_can_be_retained(file_system: dict[str, Any]) -> None:
    assert from_settings(file_systems_at_destroy="retain", **file_system).file_systems_at_destroy == "retain"
