"""The node's conclusions from the output of neuron-ls."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.userdata.neuron_ls import devices_of
from tests.userdata.plans import plan_for
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.expectations import node_expectations
from trainium_userdata.node.trn_node import neuron

FIELDS = ("neuron_device", "nc_count", "memory_size", "logical_neuroncore_config", "connected_to", "neuron_processes")
TRN1, TRN2 = plan_for("trn1.32xlarge"), plan_for("trn2.48xlarge")


def problems(plan: Plan, devices: Any) -> list[str]:
    """The problems of a node of the plan with this output of neuron-ls."""
    listed, error = neuron.read_devices(devices if isinstance(devices, str) else json.dumps(devices))
    neuron.users(listed)
    checks = neuron.check_devices(node_expectations(node_settings(plan)), listed, error)
    assert all(check.problem or "not checked" in check.found for check in checks if not check.ok)
    return [check.problem for check in checks if check.problem and not check.ok]


@pytest.mark.parametrize("plan", [TRN1, TRN2, plan_for("trn2.48xlarge", logical_neuroncore_config=1)], ids=str)
def test_healthy_node_has_no_problem(plan: Plan):
    assert problems(plan, devices_of(plan)) == []


def test_core_count_decides_without_the_lnc_field():
    devices = [{k: v for k, v in device.items() if k != "logical_neuroncore_config"} for device in devices_of(TRN2)]
    assert problems(TRN2, devices) == []
    wrong = [device | {"nc_count": 8} for device in devices]
    assert problems(TRN2, wrong) == ["128 of 64 NeuronCores", "LNC is unknown, not 2"]


def test_devices_with_the_same_fault_are_reported_together():
    devices = devices_of(TRN1)
    for number in (3, 9):
        devices[number]["memory_size"] = 16 * neuron.GIB
    assert problems(TRN1, devices) == ["device memory is 16 GiB on device 3, 9, not 32 GiB"]


@pytest.mark.parametrize(
    "output", ["", "[", "[[]]", "{}", "null", "FATA[0000]", "[" * 100_000, '{"neuron_device": 0}', '{"a": []}']
)
def test_output_that_is_not_a_device_list_is_reported(output: str):
    assert neuron.read_devices(output)[1].startswith("neuron-ls prints no ")


def listed_by(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[neuron.Devices, str]:
    """The node's result with this bash script as neuron-ls."""
    program = tmp_path / "neuron-ls"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return neuron.list_devices({"logical_neuroncore_config": None})


def test_hanging_neuron_ls_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(neuron, "SECONDS", 0.2)
    assert listed_by("sleep 30", tmp_path, monkeypatch) == ([], "neuron-ls does not end within 0.2 seconds")


# The announcement of the layout of 2.34 names no field; it only mentions fields beside the list. So no name is assumed.
SINCE_2_34: dict[str, Any] = {
    "instance_type": "trn1.32xlarge",
    "ultraserver": {},
    "anything": devices_of(TRN1),
    "other": [{"neuron_device": 0}],
}
ONLY_NEW = f"""[[ $* == '--output-format json' ]] || {{ echo 'unknown shorthand flag: j' >&2; exit 1; }}
echo '{json.dumps(SINCE_2_34)}'"""


def test_options_and_layout_of_neuron_2_34_are_supported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    devices, error = listed_by(ONLY_NEW, tmp_path, monkeypatch)
    assert not error
    assert problems(TRN1, devices) == []
    assert {device["instance_type"] for device in devices} == {"trn1.32xlarge"}


def test_fields_next_to_the_list_apply_to_every_device():
    devices = [{k: v for k, v in device.items() if k != "logical_neuroncore_config"} for device in devices_of(TRN2)]
    assert problems(TRN2, {"logical_neuroncore_config": 2, "devices": devices}) == []
    devices[3]["logical_neuroncore_config"] = 1
    listed, _ = neuron.read_devices(json.dumps({"logical_neuroncore_config": 2, "devices": devices}))
    assert [device["logical_neuroncore_config"] for device in listed[:5]] == [2, 2, 2, 1, 2]


@pytest.mark.parametrize("known", ["-j", "--output-format json"])
def test_reason_is_that_of_the_supported_neuron_ls_option(known: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = f"[[ $* == '{known}' ]] && echo 'no driver' >&2 || echo 'unknown flag' >&2; exit 1"
    assert listed_by(script, tmp_path, monkeypatch) == ([], "neuron-ls fails with exit code 1: no driver")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner),
    max_leaves=12,
)
device_like = st.fixed_dictionaries({}, optional={field: anything | st.integers(0, 20) for field in FIELDS})


@given((st.lists(device_like, max_size=18) | anything).map(json.dumps) | st.text())
def test_unexpected_neuron_ls_output_gives_a_reason(output: str):
    reasons = problems(TRN1, output)
    assert reasons
    assert all(reason.isprintable() and reason for reason in reasons)


@given(st.lists(st.integers(0, 17), max_size=20).filter(lambda ids: sorted(ids) != list(range(16))))
def test_no_other_set_of_devices_is_verified(ids: list[int]):
    sample = devices_of(TRN1)[0]
    assert problems(TRN1, [sample | {"neuron_device": number} for number in ids])


@given(st.lists(st.integers(-3, 9), min_size=16, max_size=16).filter(lambda n: sum(x for x in n if x > 0) != 32))
def test_no_other_number_of_cores_is_verified(counts: list[int]):
    devices = [device | {"nc_count": count} for device, count in zip(devices_of(TRN1), counts, strict=True)]
    assert problems(TRN1, devices)


def is_nearly(value: Any) -> bool:
    """Whether it is the memory of a device, within five percent."""
    text = str(value)
    return text.isascii() and text.isdigit() and abs(int(text) - 32 * neuron.GIB) <= 1.6 * neuron.GIB


@given(st.integers(0, 15), anything.filter(lambda value: not is_nearly(value)))
def test_no_other_device_memory_is_verified(number: int, size: Any):
    devices = devices_of(TRN1)
    devices[number] |= {"memory_size": size}
    assert problems(TRN1, devices)


def test_monitoring_programs_do_not_use_cores() -> None:
    commands = ("/opt/aws/neuron/bin/neuron-monitor -c /run/trn/neuron-monitor.json", "neuron-top", "python train.py")
    processes = [{"pid": pid, "command": command} for pid, command in enumerate(commands)]
    assert neuron.users([{"neuron_device": 0, "neuron_processes": processes}]) == ["python train.py (2)"]
