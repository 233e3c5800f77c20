"""What `trn-node` finds on a node with GPUs, against stand-ins for NVIDIA's programs."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.frameworks import native_modules
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import VerifiedNode
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_userdata.node.trn_node import compute, gpu, usage
from trainium_userdata.node.trn_node.hardware import DRAINING, FAILED, KernelLog
from trainium_userdata.node.trn_node.watch import MEMBERSHIP_CHECKS

PLAN = plan_for("p5.48xlarge")
OF_NEURON = ("neuron-devices", "neuron-cores", "lnc", "ultraserver")
ECC = "ecc.errors.uncorrected.volatile.total"
Breakage = Callable[[VerifiedNode], None]


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    return VerifiedNode(tmp_path, PLAN, aws)


def test_healthy_gpu_node_is_verified_by_every_check(node: VerifiedNode) -> None:
    outcome = node.run("verify")
    assert outcome.record, outcome.output
    assert (outcome.exit_code, outcome.record.state, outcome.record.reason) == (0, "verified", "")
    assert {check.name for check in outcome.record.checks} == set(NODE_CHECKS) - set(MEMBERSHIP_CHECKS) - set(OF_NEURON)
    assert [check.name for check in outcome.record.checks if check.warning] == []
    assert outcome.check("self-test").found == "8 of 8 GPUs, with pytorch"
    assert outcome.check("collectives").found == "correct, 478.3 GB/s at 256 MiB"
    assert sorted(node.read("visible.gpus").split()) == list("01234567")


BREAKAGES: list[tuple[str, Breakage, str]] = [
    ("driver", lambda node: (node.root / gpu.DRIVER).unlink(), "the NVIDIA driver is not loaded"),
    (
        "gpus",
        lambda node: node.write("nvidia-smi.csv", "".join(node.read("nvidia-smi.csv").splitlines(True)[:7])),
        "7 of 8 GPUs (missing: GPU 7)",
    ),
    ("gpus", lambda node: node.program("nvidia-smi", "echo lost >&2; exit 15"), "fails with exit code 15: lost"),
    ("device-memory", lambda node: node.gpus(**{"memory.total": {3: "40960"}}), "is 40960 MiB on GPU 3, not 80 GiB"),
    ("gpu-settings", lambda node: node.gpus(**{"mig.mode.current": {5: "Enabled"}}), "MIG is enabled on GPU 5"),
    ("dcgm", lambda node: node.dcgm([("pcie", "Fail", "replay rate")], exit_code=226), "pcie fails: replay rate"),
    ("collectives", lambda node: node.nccl_tests(wrong=3, exit_code=1), "all-reduce over 8 GPUs: 3 wrong numbers"),
    ("framework", lambda node: (node.root / "opt/pytorch/bin/python").unlink(), "no environment /opt/pytorch exists"),
]


@pytest.mark.parametrize(("name", "breakage", "sentence"), BREAKAGES, ids=[f"{b[0]}: {b[2][:30]}" for b in BREAKAGES])
def test_fault_fails_its_check(node: VerifiedNode, name: str, breakage: Breakage, sentence: str) -> None:
    breakage(node)
    outcome = node.run("verify")
    assert outcome.record, outcome.output
    assert (outcome.exit_code, outcome.record.state) == (1, "failed")
    assert sentence in outcome.record.reason
    assert next(check.name for check in outcome.record.checks if not check.ok) == name


WARNINGS: list[tuple[str, Breakage, str]] = [
    ("dcgm", lambda node: (node.programs / "dcgmi").unlink(), "not test the GPUs: dcgmi is not installed"),
    ("dcgm", lambda node: node.dcgm([("memory", "Skip", "")]), "dcgmi prints no test"),
    ("gpu-settings", lambda node: node.gpus(persistence_mode={2: "Disabled"}), "persistence mode is disabled on GPU 2"),
    ("hardware-errors", lambda node: node.gpus(**{ECC: {1: "4"}}), "GPU 1: 4 uncorrected memory errors, before the"),
    ("hardware-errors", lambda node: node.gpus(**{ECC: dict.fromkeys(range(8), "[N/A]")}), "no GPU has a counter"),
    (
        "collectives",
        lambda node: (node.root / "usr/local/cuda-13.0/efa/test-cuda-13.0/all_reduce_perf").unlink(),
        "not tested: nccl-tests is not installed",
    ),
]


@pytest.mark.parametrize(("name", "change", "sentence"), WARNINGS, ids=[f"{w[0]}: {w[2][:30]}" for w in WARNINGS])
def test_uncertain_finding_is_a_warning(node: VerifiedNode, name: str, change: Breakage, sentence: str) -> None:
    change(node)
    outcome = node.run("verify")
    assert outcome.exit_code == 0, outcome.output
    assert sentence in (outcome.check(name).warning or "")


def test_errors_that_increase_during_the_tests_fail_the_node() -> None:
    found = gpu.check_errors({"0": 1, "1": 0}, {"0": 2, "1": 0})
    assert not found.ok
    assert found.problem.startswith("hardware errors: GPU 0: 1 uncorrected memory errors")


def test_node_in_use_is_not_verified(node: VerifiedNode) -> None:
    node.write("compute-apps.csv", "python, 4242\n")
    outcome = node.run("verify")
    assert (outcome.exit_code, outcome.record) == (2, None)
    assert "GPUs are in use by python (4242)" in outcome.output


@pytest.mark.parametrize(
    "printed",
    [
        '{"tests": [{"name": "pcie", "results": [{"status": "Fail", "warnings": [{"warning": "w"}]}]}]}',
        '{"DCGM": {"test_categories": [{"tests": [null, {"name": "pcie", "results": [{"status": "FAIL"}]}]}]}}',
    ],
)
def test_dcgm_results_of_every_release_are_read(node: VerifiedNode, printed: str) -> None:
    node.write("dcgm.json", printed)
    assert "pcie fails" in node.run("verify").check("dcgm").found


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [("", "4 of 4 GPUs, with pytorch"), ("zeros", "GPU 2 returns zeros where the CPU returns")],
)
def test_wrong_numbers_of_a_gpu_are_found(tmp_path: Path, aws: AwsStandIn, fault: str, sentence: str) -> None:
    node = VerifiedNode(tmp_path, plan_for("g6.12xlarge"), aws)
    modules = native_modules(fault=fault, core=2, device="cuda")
    python = node.root / "opt/pytorch/bin/python"
    for path, text in modules.items():
        text = text.replace("NEURON_RT_VISIBLE_CORES", "CUDA_VISIBLE_DEVICES")
        node.write(f"opt/pytorch/modules/{path}", text)

    python.write_text(f'#!/bin/sh\nPYTHONPATH={node.root}/opt/pytorch/modules exec {sys.executable} -S "$@"\n')
    assert sentence in node.run("verify").check("self-test").found


def test_computation_on_the_cpu_does_not_verify_a_gpu() -> None:
    size = compute.SIZE
    answer = [compute.EXPECTED[row * size : (row + 1) * size] for row in range(size)]
    assert compute.verdict("cuda", answer, "cuda") == ""
    assert compute.verdict("cpu", answer, "cuda") == "computes on cpu, not on a GPU"


@pytest.mark.parametrize(("number", "state"), [("79", FAILED), ("94", DRAINING), ("13", "")])
def test_xid_in_the_kernel_log_sets_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, state: str
) -> None:
    monkeypatch.setenv("ROOT", str(tmp_path))
    log = tmp_path / "dev/kmsg"
    log.parent.mkdir()
    log.write_text(f"4,7,100,-;NVRM: Xid (PCI:0000:53:00): {number}, pid=1, name=python\n")
    assert KernelLog(-1).errors() == {f"GPU PCI:0000:53:00: Xid {number} in the kernel log": state}
    assert KernelLog(7).errors() == {}


def test_process_that_holds_a_gpu_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOT", str(tmp_path))
    for process, name in (("1", "python"), ("2", "nv-hostengine"), ("3", "bash")):
        (tmp_path / f"proc/{process}/fd").mkdir(parents=True)
        (tmp_path / f"proc/{process}/comm").write_text(f"{name}\n")
        (tmp_path / f"proc/{process}/fd/3").symlink_to("/dev/null" if name == "bash" else "/dev/nvidia0")
    (tmp_path / "proc/driver/nvidia/gpus/0000:53:00.0").mkdir(parents=True)
    assert usage.device_users() == ["python (1)"]
