#!/usr/bin/python3
"""neuron-ls: prints one object for each device.

Before release 2.34, the option is -j. Since then it is --output-format json, and the list is a field of an object (AWS
Neuron SDK documentation, announcement of 2026-10-16; the field's name is not announced, and is assumed here).
"""

import json
import sys
from pathlib import Path
from typing import Any

from node_hardware import description, devices_present, is_driver_loaded

SAMPLES = Path("/usr/share/trnlab/neuron_ls.json")
SIDE = 4
"""Sixteen devices form a torus of four by four."""


def neighbours(device: int, count: int) -> list[int] | None:
    """In the order of the documented sample, where device 0 is connected to 12, 3, 4 and 1."""
    if count != SIDE * SIDE:
        return None
    row, column = divmod(device, SIDE)
    return [
        (row - 1) % SIDE * SIDE + column,
        row * SIDE + (column - 1) % SIDE,
        (row + 1) % SIDE * SIDE + column,
        row * SIDE + (column + 1) % SIDE,
    ]


def shown(device: int, hardware: dict[str, Any], sample: dict[str, Any]) -> dict[str, Any]:
    lnc = hardware["logical_neuroncore_config"]
    cores = hardware["neuron_cores_per_device"] // lnc
    return (
        sample
        | ({"logical_neuroncore_config": lnc} if "logical_neuroncore_config" in sample else {})
        | {
            "neuron_device": device,
            "connected_to": neighbours(device, hardware["neuron_devices"]),
            "nc_count": cores,
            "memory_size": hardware["device_memory_bytes"],
            "neuroncore_ids": list(range(device * cores, (device + 1) * cores)),
            "neuron_processes": [],
        }
    )


if __name__ == "__main__":
    samples, here = json.loads(SAMPLES.read_text()), description()
    is_new = [int(number) for number in here["neuron_release"].split(".")] >= [2, 34]
    if sys.argv[1:] != (["--output-format", "json"] if is_new else ["-j"]):
        sys.exit(f"neuron-ls: unknown flag in {sys.argv[1:]}")
    if not is_driver_loaded() or not devices_present(here):
        sys.exit(samples["no_driver"]["stderr"])
    devices = [shown(device, here, samples[here["accelerator"]]) for device in devices_present(here)]
    print(json.dumps({"neuron_devices": devices} if is_new else devices))
