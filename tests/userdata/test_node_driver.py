"""The check of the driver: compatible runtimes, and messages about others."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import VerifiedNode
from trainium_core.catalog.neuron_software import neuron_packages
from trainium_userdata.node.trn_node import driver

RELOAD = 3


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    return VerifiedNode(tmp_path, plan_for("trn1.2xlarge"), aws)


@pytest.mark.parametrize(
    ("loaded", "runtime", "is_compatible"),
    [
        ("2.26.10.0", "2.31.24.0", True),
        ("2.26.10.0", "2.32.1.0", False),
        ("2.27.0.0", "2.32.1.0", True),
        ("2.28.4.0", "2.32.1.0", True),
        ("2.29.0.0", "2.32.99.0", False),
        ("2.29.0.0", "2.33.0.0", True),
        ("2.30.2.0", "2.34.10.0-0123abcd", True),
    ],
)
def test_release_notes_decide_compatibility(node: VerifiedNode, loaded: str, runtime: str, is_compatible: bool):
    node.neuron(driver=loaded, runtime=runtime)
    outcome = node.run("verify")
    assert bool(outcome.check("driver").warning) != is_compatible, outcome.output


def test_installed_packages_are_compatible(node: VerifiedNode):
    packages = neuron_packages()["release"]["packages"]
    node.neuron(driver=packages["aws-neuronx-dkms"], runtime=packages["aws-neuronx-runtime-lib"])
    driver_check = node.run("verify").check("driver")
    assert (driver_check.ok, driver_check.warning or "") == (True, "")


def test_driver_replaced_on_disk_is_reloaded_first(node: VerifiedNode):
    node.neuron(driver="2.28.4.0", runtime="2.33.2.0", installed="2.30.2.0")
    assert node.run("verify").exit_code == RELOAD
    outcome = node.run("verify", "--last")
    assert outcome.record
    assert outcome.record.reason == (
        "the Neuron driver 2.28.4.0 is loaded, but 2.30.2.0 is installed: reload it, or reboot"
    )


def test_installed_driver_is_loaded_first(node: VerifiedNode):
    (node.root / "sys/module/neuron/version").unlink()
    (node.root / "sys/module/neuron").rmdir()
    assert node.run("verify").exit_code == RELOAD
    outcome = node.run("verify", "--last")
    assert outcome.record
    assert outcome.record.reason == "the Neuron driver 2.29.1.0 is not loaded"


def test_missing_driver_is_reported_immediately(node: VerifiedNode):
    (node.root / "sys/module/neuron/version").unlink()
    (node.root / "sys/module/neuron").rmdir()
    node.program("modinfo", "echo 'modinfo: ERROR: Module neuron not found.' >&2; exit 1")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason == "the Neuron driver (aws-neuronx-dkms) is not installed for this kernel"


def test_driver_of_unknown_version_fails(node: VerifiedNode):
    node.write("sys/module/neuron/version", "\n")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason == "the Neuron driver does not show its version"


def test_runtime_is_found_by_file_without_a_package(node: VerifiedNode):
    node.program("dpkg-query", "exit 1")
    node.program("rpm", "echo package aws-neuronx-runtime-lib is not installed; exit 1")
    for name in ("libnrt.so.1", "libnrt.so.2.9.0", "libnrt.so.2.33.2.0"):
        node.write(f"opt/aws/neuron/lib/{name}")
    assert node.run("verify").check("driver").found == "driver 2.29.1.0, runtime 2.33.2.0"


@given(st.text())
def test_any_text_can_be_compared_as_a_version(text: str):
    assert all(part >= 0 for part in driver.version(text))


@given(st.lists(st.integers(0, 999), min_size=1, max_size=4))
def test_versions_are_compared_as_numbers(parts: list[int]):
    assert driver.version(".".join(map(str, parts)) + "-1a2b") == tuple(parts)
