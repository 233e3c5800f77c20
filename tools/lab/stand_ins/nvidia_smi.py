#!/usr/bin/python3
"""nvidia-smi with the queries of a node: its GPUs, and the processes that compute on them, of which there are none."""

import sys

from node_hardware import description

RESERVED_MIB = 361
"""Memory that the driver reserves."""
VALUES = {
    "mig.mode.current": "Disabled",
    "persistence_mode": "Enabled",
    "ecc.errors.corrected.volatile.total": "0",
    "ecc.errors.uncorrected.volatile.total": "0",
    "memory.used": "0",
    "utilization.gpu": "0",
}

query, form = sys.argv[1:]
what, _, fields = query.partition("=")
if form != "--format=csv,noheader,nounits":
    sys.exit(f"nvidia-smi: unknown option {form}")
if what == "--query-gpu":
    hardware = description()
    memory = str(hardware["device_memory_bytes"] // 2**20 - RESERVED_MIB)
    for number in range(hardware["gpus"]):
        values = {"index": str(number), "memory.total": memory, **VALUES}
        print(", ".join(values[field] for field in fields.split(",")))
elif what != "--query-compute-apps":
    sys.exit(f"nvidia-smi: unknown option {what}")
