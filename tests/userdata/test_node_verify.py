"""The findings, output and actions of `trn-node verify`: the real program against stand-ins for hardware and
services.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import ADDRESS, INSTANCE_ID, SECRETS, AwsStandIn
from tests.userdata.frameworks import torch_modules
from tests.userdata.neuron_ls import devices_of
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import DISK, LOG_KEY, PROGRAMS, VerifiedNode
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_userdata.node.trn_node.hardware import DEVICES
from trainium_userdata.node.trn_node.watch import MEMBERSHIP_CHECKS

TRN1 = plan_for("trn1.32xlarge")
CORE_ERRORS = "neuron_core0/stats/status/hw_hbm_ue_error/total"
RELOAD, BUSY, ABORTED = 3, 2, 4
OF_GPUS = ("gpus", "gpu-settings", "dcgm")
Breakage = Callable[[VerifiedNode], None]


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    return VerifiedNode(tmp_path, TRN1, aws)


def remove_device(node: VerifiedNode) -> None:
    remove_devices(node, 7)


def remove_devices(node: VerifiedNode, *numbers: int) -> None:
    node.neuron_ls([device for device in devices_of(TRN1) if device["neuron_device"] not in numbers])


def change_device(number: int, **fields: object) -> Breakage:
    return lambda node: node.neuron_ls(
        [device | (fields if device["neuron_device"] == number else {}) for device in devices_of(TRN1)]
    )


def remove_efa(node: VerifiedNode) -> None:
    (node.root / "sys/class/infiniband/rdmap3s27").rmdir()


def remove_disk(node: VerifiedNode) -> None:
    for ending in ("", "_1", "-part1"):
        (node.root / (DISK.format(2) + ending)).unlink()


def remove_framework(node: VerifiedNode) -> None:
    (node.root / "opt/aws_neuronx_venv_pytorch_2_9/bin/python").unlink()


BREAKAGES: list[tuple[str, Breakage, str]] = [
    ("device-memory", change_device(3, memory_size=16 * 2**30), "device memory is 16 GiB on device 3, not 32 GiB"),
    ("efa-devices", remove_efa, "7 of 8 EFA devices"),
    (
        "efa-provider",
        lambda node: node.program("fi_info", f"echo '{PROGRAMS['fi_info_without_efa']['stderr']}' >&2; exit 61"),
        "libfabric does not find the EFA provider: fi_info fails with exit code 61: fi_getinfo: -61",
    ),
    ("memlock", lambda node: node.limits("8192", "65536"), "memlock is 8192 for login users, not unlimited"),
    (
        "memlock",
        lambda node: node.limits("unlimited", "65536", of_services=("8388608", "524288")),
        "memlock is 8192 for services, not unlimited",
    ),
    ("nofile", lambda node: node.limits("unlimited", "1024"), "nofile is 1024 for login users, not 65536"),
    (
        "reserved-ports",
        lambda node: node.write("proc/sys/net/ipv4/ip_local_reserved_ports", "2703,40000-40999\n"),
        "the reserved ports lack 41000, 48620",
    ),
    ("nvme", remove_disk, "3 of 4 local NVMe disks"),
    ("framework", remove_framework, "no environment /opt/aws_neuronx_venv_pytorch_* exists"),
    (
        "self-test",
        lambda node: node.framework("pytorch", "2_9", modules=torch_modules(fault="zeros", core=5), core=5),
        "core 5 returns zeros where the CPU returns ",
    ),
    (
        "memory-test",
        lambda node: node.framework("pytorch", "2_9", modules=torch_modules(fault="memory", core=5), core=5),
        "core 5 reads other numbers from device memory than were written there",
    ),
    (
        "hardware-errors",
        lambda node: node.collectives(then=f"echo 1 >{node.root}/{DEVICES}/neuron7/{CORE_ERRORS}"),
        "hardware errors: Neuron device 7, core 0: 1 uncorrectable HBM errors",
    ),
    ("collectives", lambda node: node.collectives({"results": []}), "nccom-test reports no result"),
    ("collectives", lambda node: (node.programs / "nccom-test").unlink(), "nccom-test is not installed"),
]


def test_observed_node_with_a_fault_is_verified_with_a_warning(node: VerifiedNode):
    node.expect(verification="observe")
    remove_efa(node)
    outcome = node.run("verify")
    assert outcome.record, outcome.output
    assert (outcome.exit_code, outcome.record.state) == (0, "verified")
    assert [check.name for check in outcome.record.checks if check.warning] == ["efa-devices"]


DECISIVE: list[tuple[Breakage, str]] = [
    (remove_device, "15 of 16 Neuron devices (missing: device 7); 30 of 32 NeuronCores"),
    (lambda node: remove_devices(node, 7, 8), "14 of 16 Neuron devices (missing: devices 7, 8); 28 of 32 NeuronCores"),
    (
        lambda node: node.framework("pytorch", "2_9", modules=torch_modules(fault="zeros", core=5), core=5),
        "core 5 returns zeros where the CPU returns ",
    ),
    (
        lambda node: node.collectives(then="echo 'data mismatch in allr' >&2; exit 1"),
        "all-reduce over 32 cores: nccom-test fails with exit code 1: data mismatch in allr",
    ),
]


@pytest.mark.parametrize(("breakage", "sentence"), DECISIVE, ids=["device", "devices", "self-test", "collectives"])
def test_missing_devices_and_wrong_numbers_fail_an_observed_node(node: VerifiedNode, breakage: Breakage, sentence: str):
    node.expect(verification="observe")
    breakage(node)
    outcome = node.run("verify", "--last")
    assert outcome.record, outcome.output
    assert (outcome.exit_code, outcome.record.state) == (1, "failed")
    assert outcome.record.reason.startswith(sentence)


@pytest.mark.parametrize("name", [name for name, kind in builtin_catalog().items() if not kind.is_gpu])
def test_healthy_node_of_every_type_is_verified(tmp_path: Path, aws: AwsStandIn, name: str):
    outcome = VerifiedNode(tmp_path, plan_for(name), aws).run("verify")
    assert (outcome.exit_code, outcome.record and outcome.record.state) == (0, "verified"), outcome.output
    assert outcome.record
    assert (outcome.record.instance_id, outcome.record.address, outcome.record.reason) == (INSTANCE_ID, ADDRESS, "")


def test_healthy_node_runs_every_named_check(tmp_path: Path, aws: AwsStandIn):
    outcome = VerifiedNode(tmp_path, plan_for("trn2u.48xlarge"), aws).run("verify")
    assert outcome.record
    # Checks over all nodes run once the membership is known.
    assert {check.name for check in outcome.record.checks} == set(NODE_CHECKS) - set(MEMBERSHIP_CHECKS) - set(OF_GPUS)


@pytest.mark.parametrize(("name", "breakage", "sentence"), BREAKAGES, ids=[f"{b[0]}: {b[2][:40]}" for b in BREAKAGES])
def test_fault_fails_its_check_and_no_other(node: VerifiedNode, name: str, breakage: Breakage, sentence: str):
    breakage(node)
    outcome = node.run("verify")
    assert outcome.record, outcome.output
    assert (outcome.exit_code, outcome.record.state) == (1, "failed")
    assert sentence in outcome.record.reason
    assert [check.name for check in outcome.record.checks if not check.ok] == [name]


def test_all_problems_are_reported_together(node: VerifiedNode):
    remove_efa(node)
    node.limits("unlimited", "1024")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason == "7 of 8 EFA devices; nofile is 1024 for login users, not 65536"


def test_missing_device_reloads_the_driver_before_the_report(node: VerifiedNode):
    remove_device(node)
    outcome = node.run("verify")
    assert (outcome.exit_code, outcome.record) == (RELOAD, None)


def test_failing_neuron_ls_is_quoted_and_no_core_computes(node: VerifiedNode):
    node.neuron_ls([], failures=9)
    outcome = node.run("verify", "--last")
    assert outcome.record
    assert outcome.record.reason == "neuron-ls fails with exit code 1: FATA[0000] Failed to discover neuron devices"
    assert not (node.root / "nccom-test.arguments").exists()


def test_devices_that_appear_late_are_waited_for(node: VerifiedNode):
    node.neuron_ls(devices_of(TRN1), failures=2)
    assert node.run("verify", TRN_VERIFY_ATTEMPTS="3").exit_code == 0


def test_incompatible_driver_fails_first_if_no_core_computes(node: VerifiedNode):
    node.neuron(driver="2.26.5.0", runtime="2.33.2.0")
    node.neuron_ls([], failures=9)
    outcome = node.run("verify", "--last")
    assert outcome.record
    assert outcome.record.reason.startswith("driver 2.26.5.0 and runtime 2.33.2.0 are incompatible: runtime 2.32")
    assert outcome.check("self-test").found == "not checked: neuron-devices, neuron-cores must pass first"


def test_suppressed_check_is_shown_and_does_not_count(node: VerifiedNode):
    remove_efa(node)
    node.expect(suppress_checks=["efa-devices"])
    outcome = node.run("verify")
    assert outcome.record
    assert (outcome.record.state, outcome.check("efa-devices").found) == ("verified", "7 (suppressed)")


def test_suppressed_check_does_not_reload_the_driver(node: VerifiedNode):
    remove_device(node)
    node.expect(suppress_checks=["neuron-devices", "neuron-cores"], neuron_cores=32)
    assert node.run("verify").exit_code == 0


def test_failed_node_always_has_a_reason(node: VerifiedNode):
    node.neuron_ls([], failures=9)
    node.expect(suppress_checks=["neuron-devices"])
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason.startswith("neuron-cores: not checked: neuron-ls lists no device")


def test_unsynchronised_clock_fails_if_s3_cannot_be_queried(node: VerifiedNode):
    node.program("timedatectl", "echo no")
    node.write("etc/trn/places.env", "TRN_REGION=us-west-2\n")
    assert "WRONG time-sync" in node.run("verify").output


def test_neuron_ls_gets_the_lnc(tmp_path: Path, aws: AwsStandIn):
    plan = plan_for("trn2.3xlarge", logical_neuroncore_config=1)
    node = VerifiedNode(tmp_path, plan, aws)
    node.write("without-lnc.json", json.dumps(devices_of(plan_for("trn2.3xlarge"))))
    shown = f'f=neuron-ls.json; [ "$NEURON_LOGICAL_NC_CONFIG" = 1 ] || f=without-lnc.json; cat {node.root}/$f'
    node.program("neuron-ls", shown)
    assert node.run("verify").exit_code == 0


def test_wrong_clock_is_reported_to_s3_despite_its_refusal(node: VerifiedNode):
    node.aws.clock_ahead = timedelta(minutes=20)
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason.startswith("the clock is 1")
    assert outcome.record.reason.endswith(
        " seconds behind S3's clock; S3 refuses requests if the clocks differ by more than 900 seconds"
    )


def test_chrony_overrides_a_negative_timedatectl(node: VerifiedNode):
    node.program("timedatectl", "echo no")
    node.program("chronyc", f"printf %s '{PROGRAMS['chronyc']['synchronised']}'")
    assert node.run("verify").exit_code == 0


def test_collectives_are_the_numeric_test_without_a_framework(node: VerifiedNode):
    remove_framework(node)
    node.expect(framework=None, frameworks={"jax": "jax"})
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.state == "verified"
    assert outcome.check("self-test").found == "no framework here: nccom-test computes instead"


@pytest.mark.parametrize("check", ["-", "random|all_ones"], ids=["before 2.28", "since 2.28"])
def test_collectives_options_suit_nccom_test_before_and_since_2_28(node: VerifiedNode, check: str):
    node.collectives(check=check)
    assert node.run("verify").check("collectives").ok
    arguments = node.read("nccom-test.arguments").split()
    assert arguments[:2] == ["-r", "32"]
    assert "-c" in arguments
    assert arguments[-1] == "allr"


def test_variables_for_training_do_not_affect_the_tests(node: VerifiedNode):
    node.run("verify", NEURON_RT_ROOT_COMM_ID="10.42.0.99:1", NEURON_CC_FLAGS="--cache_dir=s3://cluster-cache")
    assert "NEURON_" not in node.read("nccom-test.environment")


def test_nothing_is_tested_while_a_job_computes(node: VerifiedNode):
    node.run("verify")
    before = node.aws.records.copy()
    job = [{"pid": 113985, "command": "python train.py", "neuron_runtime_version": "2.0.0"}]
    change_device(2, neuron_processes=job)(node)
    outcome = node.run("verify")
    assert (outcome.exit_code, node.aws.records) == (BUSY, before)
    assert "NeuronCores are in use by python train.py (113985)" in outcome.output


def test_job_that_begins_during_the_tests_does_not_fail_the_node(node: VerifiedNode):
    job = [{"pid": 113985, "command": "python train.py"}]
    node.write("later.json", json.dumps([device | {"neuron_processes": job} for device in devices_of(TRN1)]))
    node.collectives(then=f"cp {node.root}/later.json {node.root}/neuron-ls.json; echo in use >&2; exit 1")
    outcome = node.run("verify")
    assert (outcome.exit_code, outcome.record) == (BUSY, None)
    assert "in use by python train.py (113985), which may be the cause: all-reduce over 32 cores: " in outcome.output


def test_leftover_process_of_a_test_is_not_a_job(node: VerifiedNode):
    left = [{"pid": 4711, "command": "nccom-test"}]
    node.write("left.json", json.dumps([device | {"neuron_processes": left} for device in devices_of(TRN1)]))
    node.write("sound.json", node.read("neuron-ls.json"))
    shown = node.root / "neuron-ls.json"
    node.program("neuron-ls", f"cat {shown}; cp {node.root}/sound.json {shown}")
    node.collectives(then=f"cp {node.root}/left.json {shown}; exit 1")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason.startswith("all-reduce over 32 cores: nccom-test fails")


def test_unreadable_plan_is_a_reason(node: VerifiedNode):
    node.write("etc/trn/plan.json", "{")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason.startswith("/etc/trn/plan.json cannot be read: ")


def test_aborted_verification_reports_nothing_and_exits_4(node: VerifiedNode):
    del node.expectations["logical_neuroncore_config"]
    node.expect()
    outcome = node.run("verify")
    assert (outcome.exit_code, outcome.record) == (ABORTED, None)
    assert "nothing was reported: KeyError: 'logical_neuroncore_config'" in outcome.output


def test_exception_in_a_check_is_a_reason_without_traceback(node: VerifiedNode):
    node.expect(reserved_ports=None)
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.reason.startswith("the check reserved-ports ends with TypeError")
    assert "Traceback" not in outcome.output


def test_no_secret_is_printed_or_stored(node: VerifiedNode):
    outcome = node.run("verify")
    everything = outcome.output + json.dumps(node.aws.records)
    assert not any(secret in everything for secret in SECRETS)


def test_log_is_stored_beside_the_record(node: VerifiedNode):
    node.run("verify")
    assert node.aws.records[LOG_KEY] == "booted\n"


def test_failure_is_never_held_back(node: VerifiedNode):
    remove_efa(node)
    outcome = node.run("verify", "--hold")
    assert outcome.record
    assert outcome.record.state == "failed"
