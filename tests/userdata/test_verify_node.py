"""What the node's program concludes from the output of neuron-ls and the folders of /sys."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.userdata.neuron_ls import NEWER_FIELDS, devices_of
from tests.userdata.plans import plan_for
from trainium_core.plan import Plan
from trainium_userdata.node import verify_node
from trainium_userdata.node.verify_node import Expected, NeuronLsError

SOURCE = Path(verify_node.__file__).read_text()
FIELDS = ("neuron_device", "nc_count", "memory_size", "logical_neuroncore_config", "connected_to", "numa_node")


def expected_of(plan: Plan) -> Expected:
    return Expected(
        neuron_devices=plan.type.neuron_devices,
        neuron_cores=plan.neuron_cores_per_node,
        device_memory_gib=plan.type.device_memory_gib,
        logical_neuroncore_config=plan.lnc,
        efa_devices=plan.type.efa_interfaces,
    )


TRN1, TRN2 = plan_for("trn1.32xlarge"), plan_for("trn2.48xlarge")


def conclusion(plan: Plan, output: str) -> list[str]:
    """What is wrong with a node of the plan whose neuron-ls prints this."""
    try:
        checks = verify_node.check_neuron(expected_of(plan), output)
    except NeuronLsError as error:
        return [str(error)]
    return [check.complaint for check in checks if not check.ok]


def complaints(plan: Plan, devices: Any) -> list[str]:
    return conclusion(plan, json.dumps(devices))


@pytest.mark.parametrize("plan", [TRN1, TRN2, plan_for("trn2.48xlarge", logical_neuroncore_config=1)], ids=str)
def test_a_sound_node_has_no_complaint(plan: Plan):
    assert complaints(plan, devices_of(plan)) == []


def test_numbers_that_come_as_text_are_read():
    devices = [device | {"nc_count": str(device["nc_count"])} for device in devices_of(TRN1)]
    assert complaints(TRN1, devices) == []


def test_fields_of_newer_tools_do_no_harm():
    assert complaints(TRN2, [device | NEWER_FIELDS for device in devices_of(TRN2)]) == []


def test_the_order_of_the_devices_does_not_matter():
    assert complaints(TRN1, devices_of(TRN1)[::-1]) == []


def test_without_the_lnc_field_the_number_of_cores_decides():
    devices = [{k: v for k, v in device.items() if k != "logical_neuroncore_config"} for device in devices_of(TRN2)]
    assert complaints(TRN2, devices) == []
    assert complaints(TRN2, [device | {"nc_count": 8} for device in devices]) == ["128 of 64 NeuronCores"]


def test_a_device_listed_twice_does_not_stand_for_another():
    devices = devices_of(TRN1)
    devices[5] = devices[4]
    assert complaints(TRN1, devices) == ["neuron-ls shows 16 of 16 Neuron devices (missing 5)"]


def test_devices_with_the_same_fault_are_told_together():
    devices = devices_of(TRN1)
    for number in (3, 9):
        devices[number]["memory_size"] = 16 * verify_node.GIB
    assert complaints(TRN1, devices) == ["device memory is 16 GiB on device 3, 9, not 32 GiB"]


def test_another_lnc_than_planned_is_told():
    single = plan_for("trn2.3xlarge", logical_neuroncore_config=1)
    assert complaints(plan_for("trn2.3xlarge"), devices_of(single)) == [
        "8 of 4 NeuronCores",
        "LNC is 1 on device 0, not 2",
    ]


@pytest.mark.parametrize("output", ["", "[", "[[]]", "{}", "null", "FATA[0000]", "[" * 100_000, '{"neuron_device": 0}'])
def test_output_that_is_no_list_of_devices_is_told_as_such(output: str):
    with pytest.raises(NeuronLsError, match="neuron-ls printed no"):
        verify_node.read_devices(output)


def test_a_neuron_ls_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "neuron-ls"
    program.write_text("#!/bin/bash\nexec sleep 30\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(verify_node, "NEURON_LS_SECONDS", 0.2)
    with pytest.raises(NeuronLsError, match="timed out"):
        verify_node.neuron_ls()


def test_efa_devices_are_counted_in_sys(tmp_path: Path):
    for name in ("rdmap0s27", "rdmap1s27"):
        (tmp_path / "sys/class/infiniband" / name).mkdir(parents=True)
    assert verify_node.check_efa(2, tmp_path).ok
    assert verify_node.check_efa(3, tmp_path).complaint == "2 of 3 EFA devices"


def test_a_node_without_the_folder_has_no_efa_device(tmp_path: Path):
    assert verify_node.check_efa(8, tmp_path).found == "0"


def test_the_program_imports_the_standard_library_only():
    imported = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported <= sys.stdlib_module_names


def test_the_program_is_python_3_9():
    ast.parse(SOURCE, feature_version=(3, 9))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner),
    max_leaves=12,
)
device_like = st.fixed_dictionaries({}, optional={field: anything | st.integers(0, 20) for field in FIELDS})


@given((st.lists(device_like, max_size=18) | anything).map(json.dumps) | st.text())
def test_whatever_else_neuron_ls_prints_is_answered_with_a_reason(output: str):
    reasons = conclusion(TRN1, output)
    assert reasons
    assert all(reason.isprintable() and reason for reason in reasons)


@given(st.lists(st.integers(0, 17), max_size=20).filter(lambda ids: sorted(ids) != list(range(16))))
def test_no_other_set_of_devices_is_ever_proven(ids: list[int]):
    sample = devices_of(TRN1)[0]
    assert complaints(TRN1, [sample | {"neuron_device": number} for number in ids])


@given(st.lists(st.integers(-3, 9), min_size=16, max_size=16).filter(lambda n: sum(x for x in n if x > 0) != 32))
def test_no_other_number_of_cores_is_ever_proven(counts: list[int]):
    devices = [device | {"nc_count": count} for device, count in zip(devices_of(TRN1), counts, strict=True)]
    assert complaints(TRN1, devices)


@given(
    st.integers(0, 15), anything.filter(lambda value: value not in (32 * verify_node.GIB, str(32 * verify_node.GIB)))
)
def test_no_other_memory_of_a_device_is_ever_proven(number: int, size: Any):
    devices = devices_of(TRN1)
    devices[number] |= {"memory_size": size}
    assert complaints(TRN1, devices)
