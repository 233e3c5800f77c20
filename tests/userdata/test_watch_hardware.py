"""How the watch reacts to errors of the Neuron devices. The lines are from the documentation, not from a device."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.explanations.known_errors import known_error
from trainium_userdata.node.trn_node import files, hardware

DOCUMENTED = (
    "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0592464924bd45322 hostname=ip-172-31-61-252 nd-id=3 "
    "nc-id=0 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE"
)
"""AWS Neuron SDK documentation, neuron-runtime/nrt-troubleshoot.rst at 2.32.0; the device's number is changed."""


@pytest.fixture
def kernel_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROOT", str(tmp_path))
    files.write("dev/kmsg", "")
    return tmp_path / "dev/kmsg"


def test_documented_error_fails_the_node_and_names_the_device(kernel_log: Path):
    kernel_log.write_text(f"6,7,12,-;Linux version 6.8\n4,8,99,-;{DOCUMENTED}\n SUBSYSTEM=neuron\n")
    errors = hardware.KernelLog(-1).errors()
    assert errors == {"Neuron device 3: SRAM_UNCORRECTABLE_ERROR in the kernel log": "failed"}


@pytest.mark.parametrize(
    "error", ["SRAM_UNCORRECTABLE_ERROR", "NC_UNCORRECTABLE_ERROR", "HBM_UNCORRECTABLE_ERROR", "DMA_ERROR"]
)
def test_problem_detector_error_without_action_fails_the_node(error: str):
    assert hardware.classify(error, " nd-id=0")[1] == "failed"


def test_unknown_error_fails_the_node_if_its_action_requires():
    assert hardware.classify("NEW_ERROR", " nd-id=0 action=TERMINATE_INSTANCE")[1] == "failed"


def test_unknown_error_without_that_action_drains_the_node():
    assert hardware.classify("HBM_REPAIRABLE_UNCORRECTABLE_ERROR", " nd-id=0 action=RESET_DEVICE")[1] == "draining"


def test_hang_in_collectives_does_not_affect_this_node():
    assert hardware.classify("HANG_ON_COLLECTIVES", " nd-id=0 action=TERMINATE_INSTANCE")[1] == ""


NAMES = {"DMA_ERROR": "DMA abort", "failed": "GPU is lost", "draining": "GPU needs a reset"}


@pytest.mark.parametrize("error", hardware.LOST)
def test_explanation_of_an_error_of_a_device_is_that_of_its_cause(error: str):
    known = known_error(f"node i-1: {hardware.classify(error, ' nd-id=0')[0]}")
    assert known
    assert known.name == NAMES.get(error, "uncorrectable memory error")


@pytest.mark.parametrize("xid", hardware.XIDS)
def test_explanation_of_an_error_of_a_gpu_says_whether_a_reset_repairs_it(kernel_log: Path, xid: str):
    kernel_log.write_text(f"3,7,1,-;NVRM: Xid (PCI:0000:10:1c): {xid}, pid=1, name=python\n")
    ((text, state),) = hardware.KernelLog(-1).errors().items()
    known = [known_error(words) for words in (f"node i-1: {text}", kernel_log.read_text())]
    assert [error and error.name for error in known] == [NAMES[state]] * 2


def test_new_reader_skips_earlier_lines(kernel_log: Path):
    kernel_log.write_text(f"4,8,99,-;{DOCUMENTED}\n")
    log = hardware.KernelLog(-1)
    log.errors()
    assert hardware.KernelLog(log.seen).errors() == {}


def test_empty_log_does_not_block(kernel_log: Path):
    kernel_log.unlink()
    os.mkfifo(kernel_log)
    assert hardware.KernelLog(-1).errors() == {}


@given(st.binary())
def test_no_bytes_in_the_log_break_the_reader(noise: bytes):
    reading, writing = os.pipe2(os.O_NONBLOCK)
    log = hardware.KernelLog(-1)
    log._file = reading
    try:
        os.write(writing, noise[:4096])
        assert isinstance(log.errors(), dict)
    finally:
        os.close(reading)
        os.close(writing)


def test_increased_counter_is_reported_with_the_device():
    found = hardware.increases({"neuron11/mem_ecc_uncorrected": 1}, {"neuron11/mem_ecc_uncorrected": 2})
    assert found == {"Neuron device 11: new uncorrectable memory errors (mem_ecc_uncorrected)": "failed"}


@given(st.integers(0), st.integers(0))
def test_only_an_increase_counts(before: int, now: int):
    name = "neuron0/sram_ecc_uncorrected"
    assert bool(hardware.increases({name: before}, {name: now})) == (now > before)


@pytest.mark.parametrize("place", ["stats/hardware/{}", "ecc/{}", "stats/hardware/{}/total"])
def test_counters_are_found_at_any_path_of_the_driver(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROOT", str(tmp_path))
    files.write(f"{hardware.DEVICES}/neuron0/{place.format('mem_ecc_uncorrected')}", "4\n")
    files.write(f"{hardware.DEVICES}/neuron0/neuron_core0/{place.format('mem_ecc_uncorrected')}", "9\n")
    assert hardware.counters() == {"neuron0/mem_ecc_uncorrected": 4}


@pytest.mark.parametrize("place", ["neuron_core0", "stats/cores/neuron_core0"])
def test_counters_of_cores_are_found_at_any_path_of_the_driver(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ROOT", str(tmp_path))
    files.write(f"{hardware.DEVICES}/neuron0/{place}/stats/status/hw_hbm_ue_error/total", "2\n")
    assert hardware.core_counters() == {"neuron0/neuron_core0/hw_hbm_ue_error": 2}


def test_missing_counters_of_cores_are_a_warning():
    check = hardware.check_errors({}, {"neuron0/mem_ecc_uncorrected": 0}, [])
    assert check.warning == "hardware errors: the driver shows no error counters of cores"


def test_unreadable_counter_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROOT", str(tmp_path))
    files.write(f"{hardware.DEVICES}/neuron0/stats/hardware/mem_ecc_uncorrected", "not a number\n")
    assert hardware.counters() == {}


def test_unnamed_device_is_unknown():
    assert hardware.classify("DMA_ERROR", "")[0] == "Neuron device unknown: DMA_ERROR in the kernel log"
