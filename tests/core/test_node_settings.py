"""Settings of the nodes' software, checks and recovery: what is read, and what is refused."""

from typing import Any

import pytest

from tests.core.plans import from_settings, the_problem
from trainium_core.facts import facts
from trainium_core.plan.node_checks import NODE_CHECKS

BARE = facts()["bare_images"]["parameters"]["Ubuntu 24.04"]


@pytest.mark.parametrize(
    "given", ["nvme,time-sync", " nvme , time-sync,", ["nvme", "time-sync"], ["nvme"] * 2 + ["time-sync"]]
)
def test_suppressed_checks_are_names(given: Any) -> None:
    assert from_settings(suppress_checks=given).node.suppress_checks == ("nvme", "time-sync")


def test_a_misspelt_check_is_reported_with_its_nearest_name() -> None:
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
