"""The node lab imitates software that exists."""

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.lab import pytorch
from tools.lab.hardware import hardware_of
from tools.lab.neuron_software import default_image, neuron_software
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.catalog.neuron_software import default_image as image_of_plans
from trainium_core.catalog.neuron_software import parameter_framework
from trainium_core.plan import Plan
from trainium_userdata.node.trn_node.device_readings import neuron_reading


def test_default_image_has_packages_of_the_last_release_with_its_framework() -> None:
    framework = parameter_framework(image_of_plans(builtin_catalog()["trn1.32xlarge"]))
    assert framework
    image = default_image()
    versions = {package.name: package.version for package in neuron_software(image["packages"])}
    # The packages of Neuron's tools have the version of the release.
    assert {version.rsplit(".", 1)[0] for version in (image["neuron_sdk"], versions["aws-neuronx-tools"][:-2])} == {
        framework.last_release
    }


@pytest.mark.parametrize("home", ["/usr", "/home/user/.pyenv/versions/3.12.1"])
def test_environment_of_pytorch_is_at_a_place_that_jobs_see(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, root = tmp_path / "home/user/checkout/.venv-torch", tmp_path / "node"
    (checkout / "lib/python3.12").mkdir(parents=True)
    (checkout / "pyvenv.cfg").write_text(f"home = {home}/bin\n")
    monkeypatch.setattr(pytorch, "TORCH", checkout)

    def write(path: str, text: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    node: Any = SimpleNamespace(root=root, shared={}, write=write)
    pytorch.share_torch(node)
    program = root / pytorch.PYTHON.lstrip("/")
    base = Path(home) if home == "/usr" else Path(pytorch.PYTHON_HOME)
    assert program.with_name("python3.12").readlink() == base / "bin/python3.12"
    assert f"LD_LIBRARY_PATH={base}/lib {pytorch.ENVIRONMENT}/bin/python3.12" in program.read_text()
    shared = {pytorch.PYTHON_HOME: Path(home)} if home != "/usr" else {}
    assert node.shared == {f"{pytorch.ENVIRONMENT}/lib": checkout / "lib", **shared}
    assert not [place for place in node.shared if not Path(place).is_relative_to("/opt")]


def test_report_of_neuron_monitor_is_one_that_nodes_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("tools/lab/stand_ins")
    monitor: Any = import_module("neuron_monitor")
    hardware = replace(
        hardware_of(Plan.of(instance_type="trn1.32xlarge", region="us-west-2")), failed_executions=2, corrected_errors=1
    )
    monkeypatch.setattr(monitor, "description", hardware.description)
    monkeypatch.setattr(monitor, "is_driver_loaded", lambda: True)
    cores = hardware.neuron_devices * hardware.neuron_cores_per_device // hardware.logical_neuroncore_config
    busy = neuron_reading(monitor.report({7: 10.0}, {7: 10.0 + 30 * (os.cpu_count() or 1)}, 60), cores)
    assert (busy.core_utilization, busy.memory_utilization, busy.execution_errors) == (50, 25, 2)
    assert sum((busy.corrected or {}).values()) == hardware.neuron_devices
    assert neuron_reading(monitor.report({}, {}, 60), cores).core_utilization == 0
