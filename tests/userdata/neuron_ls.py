"""Output of `neuron-ls -j`, made from data/neuron_ls.json: documented samples, not recordings."""

import json
import math
from pathlib import Path
from typing import Any

from trainium_core.plan import Plan

SAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "neuron_ls.json").read_text())


def devices_of(plan: Plan) -> list[dict[str, Any]]:
    """The list that a healthy node of the plan prints."""
    sample = SAMPLES[plan.type.accelerator]
    cores = plan.type.neuron_cores_per_device // plan.lnc
    configured = {"logical_neuroncore_config": plan.lnc} if "logical_neuroncore_config" in sample else {}
    return [
        sample
        | configured
        | {"neuron_device": n, "nc_count": cores, "neuroncore_ids": list(range(n * cores, (n + 1) * cores))}
        | {"connected_to": neighbours(n, plan.type.neuron_devices), "neuron_processes": []}
        for n in range(plan.type.neuron_devices)
    ]


def neighbours(device: int, devices: int) -> list[int] | None:
    """The neighbours in a square torus, which connects 16 devices; None for a single device."""
    side = math.isqrt(devices)
    if side < 2:
        return None
    row, column = divmod(device, side)
    return [
        (row - 1) % side * side + column,
        row * side + (column - 1) % side,
        (row + 1) % side * side + column,
        row * side + (column + 1) % side,
    ]
