"""What `neuron-ls -j` prints, made of data/neuron_ls.json: documented samples, not recordings."""

import json
from pathlib import Path
from typing import Any

from trainium_core.plan import Plan

SAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "neuron_ls.json").read_text())
NEWER_FIELDS: dict[str, Any] = SAMPLES["newer_tools"]["fields"]
NO_DRIVER: str = SAMPLES["no_driver"]["stderr"]


def devices_of(plan: Plan) -> list[dict[str, Any]]:
    """The list that a sound node of the plan prints."""
    sample = SAMPLES[plan.type.accelerator]
    cores = plan.type.neuron_cores_per_device // plan.lnc
    configured = {"logical_neuroncore_config": plan.lnc} if "logical_neuroncore_config" in sample else {}
    return [
        sample
        | configured
        | {"neuron_device": n, "nc_count": cores, "neuroncore_ids": list(range(n * cores, (n + 1) * cores))}
        for n in range(plan.type.neuron_devices)
    ]
