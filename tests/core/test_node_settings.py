"""Settings of the nodes: software, checks, recovery and the setup script."""

from pathlib import Path
from typing import Any

import pytest

from tests.core.plans import from_settings, the_problem
from trainium_core.facts import facts

BARE = facts()["bare_images"]["parameters"]["Ubuntu 24.04"]


@pytest.mark.parametrize(
    "given", ["nvme,time-sync", " nvme , time-sync,", ["nvme", "time-sync"], ["nvme"] * 2 + ["time-sync"]]
)
def test_suppressed_checks_accept_list_or_text(given: Any) -> None:
    assert from_settings(suppress_checks=given).node.suppress_checks == ("nvme", "time-sync")


def test_misspelt_check_is_reported_with_the_nearest() -> None:
    problem = the_problem(suppress_checks="selftest")
    assert problem.fix == "'selftest': write self-test"


def test_installation_without_internet_is_refused() -> None:
    problem = the_problem(neuron_software="install", ami=BARE, egress="vpc-endpoints")
    assert (problem.key, "trn:egress" in problem.fix) == ("neuron_software", True)


def test_installation_on_complete_image_is_refused() -> None:
    problem = the_problem(neuron_software="install", egress="nat-gateway")
    assert problem.key == "ami"
    assert BARE in problem.fix


def test_bare_image_without_installation_is_refused() -> None:
    problem = the_problem(ami=BARE)
    assert problem.key == "ami"
    assert "set trn:neuron_software to install" in problem.fix


BROKEN = "if true; then\n  echo\n"


def script(folder: Path, text: bytes) -> str:
    (folder / "setup.sh").write_bytes(text)
    return str(folder / "setup.sh")


def test_setup_script_with_a_syntax_error_is_refused(tmp_path: Path) -> None:
    problem = the_problem(setup_script=script(tmp_path, BROKEN.encode()))
    assert problem.key == "setup_script"
    assert "line 3: syntax error: unexpected end of file" in problem.allowed


def test_script_is_read_but_not_run(tmp_path: Path) -> None:
    from_settings(setup_script=script(tmp_path, f"touch {tmp_path}/ran\n".encode()))
    assert not (tmp_path / "ran").exists()


def test_carriage_returns_become_line_feeds(tmp_path: Path) -> None:
    assert from_settings(setup_script=script(tmp_path, b"echo a\r\necho b\r\n")).setup_script == "echo a\necho b\n"


def test_replacements_without_recovery_are_refused() -> None:
    assert the_problem(node_recovery="off", node_replacements=5).key == "node_replacements"


def test_security_group_of_prometheus_without_a_port_is_refused() -> None:
    assert the_problem(metrics_security_group="sg-0123456789abcdef0").key == "metrics_security_group"
