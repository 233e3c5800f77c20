"""Warnings of `trn-node verify`, which do not fail a node."""

import shutil
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.frameworks import torch_modules
from tests.userdata.plans import plan_for
from tests.userdata.test_node_verify import TRN1, Breakage
from tests.userdata.verified_node import VerifiedNode
from trainium_userdata.node.trn_node.hardware import DEVICES, HEALTH


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    return VerifiedNode(tmp_path, TRN1, aws)


def unmounted_scratch(node: VerifiedNode) -> None:
    node.scratch(7600, target="/")
    node.write("run/trn/scratch", "the local disk /dev/nvme1n1 is not blank (ext4); it was not changed\n")


WARNINGS: list[tuple[str, Breakage, str]] = [
    ("time-sync", lambda node: node.program("timedatectl", "echo no"), "the clock is not synchronised"),
    ("nvme", unmounted_scratch, "/scratch on the local disks: not mounted (the local disk /dev/nvme1n1 is not blank"),
    (
        "collectives",
        lambda node: node.collectives(then="echo No mismatch on rank 3"),
        "nccom-test exits with 0 and prints: No mismatch on rank 3",
    ),
    ("driver", lambda node: node.neuron(driver="2.26.5.0", runtime="2.33.2.0"), "are incompatible: runtime 2.32"),
    ("efa-domains", lambda node: node.efa(8, opened=7), "libfabric opens 7 of 8 EFA devices"),
    (
        "hardware-errors",
        lambda node: node.counter(3, "neuron_core0/stats/status/hw_hbm_ue_error/total", 2),
        "Neuron device 3, core 0: 2 uncorrectable HBM errors, before the tests",
    ),
    (
        "hardware-errors",
        lambda node: node.write(f"{DEVICES}/neuron4/stats/hardware/health_status/{HEALTH}", "link_efa,hbm\n"),
        "Neuron device 4: hbm, link_efa unhealthy",
    ),
    ("hardware-errors", lambda node: shutil.rmtree(node.root / DEVICES), "the driver shows no error counters"),
    (
        "memory-test",
        lambda node: node.framework("pytorch", "2_9", modules=torch_modules(fault="crash in memory", core=5), core=5),
        "core 5 has not read its device memory: the computation fails with exit code 1: ",
    ),
]
"""Faults that do not make a healthy node unusable."""


def test_all_reduce_that_crashes_is_retried_once(node: VerifiedNode):
    first = f"{node.root}/first"
    node.collectives(then=f"[ -e {first} ] || {{ touch {first}; exit 9; }}")
    assert node.run("verify").check("collectives").ok


def test_failure_that_may_be_a_wrong_sum_is_not_retried(node: VerifiedNode):
    runs = f"{node.root}/runs"
    node.collectives(then=f"echo run >>{runs}; echo 1 errors found - test failed; exit 1")
    assert not node.run("verify").check("collectives").ok
    assert node.read("runs") == "run\n"


@pytest.mark.parametrize(("name", "breakage", "sentence"), WARNINGS, ids=[f"{w[0]}: {w[2][:40]}" for w in WARNINGS])
def test_fault_that_jobs_tolerate_is_a_warning(node: VerifiedNode, name: str, breakage: Breakage, sentence: str):
    breakage(node)
    outcome = node.run("verify")
    assert outcome.record, outcome.output
    assert (outcome.exit_code, outcome.record.state, outcome.record.reason) == (0, "verified", "")
    assert [check.name for check in outcome.record.checks if check.warning] == [name]
    assert sentence in outcome.record.warnings


@pytest.mark.parametrize(
    ("mode", "found"),
    [("4", "1 node"), ("busy", "busy"), ("", "the driver shows no mode")],
    ids=["alone", "election", "old driver"],
)
def test_node_without_the_rest_of_its_ultraserver_is_a_warning(tmp_path: Path, aws: AwsStandIn, mode: str, found: str):
    node = VerifiedNode(tmp_path, plan_for("trn2u.48xlarge"), aws)
    node.write("sys/class/neuron_device/ultraserver_mode", f"{mode}\n")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.state == "verified"
    assert outcome.record.warnings == f"the node finds no other node of its UltraServer over NeuronLink: {found}"
