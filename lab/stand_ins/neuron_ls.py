#!/usr/bin/python3
"""neuron-ls: knows -j alone, and prints one object for each device that is there."""

import json
import sys
from pathlib import Path
from typing import Any

from node_hardware import description, devices_present, is_driver_loaded

SAMPLES = Path("/usr/share/trnlab/neuron_ls.json")
SIDE = 4
"""Sixteen devices are a torus of four by four."""


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
    if sys.argv[1:] not in (["-j"], ["--json-output"]):
        sys.exit(f"neuron-ls: this stand-in knows -j alone, got {sys.argv[1:]}")
    if not is_driver_loaded() or not devices_present(here):
        sys.exit(samples["no_driver"]["stderr"])
    print(json.dumps([shown(device, here, samples[here["accelerator"]]) for device in devices_present(here)]))
