"""Settings of the nodes' software, checks and recovery: what is read, and what is refused."""

from typing import Any

import pytest

from tests.core.plans import from_settings, the_problem
from trainium_core.facts import facts

BARE = facts()["bare_images"]["parameters"]["Ubuntu 24.04"]


@pytest.mark.parametrize(
    "given", ["nvme,time-sync", " nvme , time-sync,", ["nvme", "time-sync"], ["nvme"] * 2 + ["time-sync"]]
)
def test_suppressed_checks_are_names(given: Any) -> None:
    assert from_settings(suppress_checks=given).node.suppress_checks == ("nvme", "time-sync")


def test_a_misspelt_check_is_reported_with_its_nearest_name() -> None:
    problem = the_problem(suppress_checks="selftest")
    assert problem.fix == "'selftest' is none of them; write self-test"


def test_installing_on_a_node_without_internet_is_refused() -> None:
    problem = the_problem(neuron_software="install", ami=BARE)
    assert (problem.key, "trn:egress" in problem.fix) == ("neuron_software", True)


def test_installing_on_an_image_that_has_everything_is_refused() -> None:
    problem = the_problem(neuron_software="install", egress="nat-gateway")
    assert problem.key == "ami"
    assert BARE in problem.fix
