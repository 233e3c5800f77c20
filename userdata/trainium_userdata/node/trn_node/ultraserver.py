"""The modes in which this node can work with the others of its UltraServer over NeuronLink.

Sources: AWS Neuron SDK documentation at 2.32.0, src/k8/k8s-ultraserver-init-script.sh and
neuron-runtime/api/neuron_driver_shared.rst; aws-neuron-driver, v3/neuron_pelect.c.
"""

from __future__ import annotations

from typing import Any

from . import files
from .check import Check

MODE = "sys/class/neuron_device/ultraserver_mode"
MODES = {"1": "4 nodes", "2": "2 nodes (horizontal)", "3": "2 nodes (vertical)", "4": "1 node"}
ALONE = "4"


def check_mode(plan: dict[str, Any]) -> list[Check]:
    """The check; none for types that are not in UltraServers.

    Every problem is a warning, because the node computes without the others. The driver reports "busy" while the nodes
    find each other.
    """
    nodes = plan.get("ultraserver_nodes", 1)
    if nodes == 1:
        return []
    text = files.read(MODE).strip()
    supported = [mode.strip() for mode in text.split(",") if mode.strip() in MODES]
    found = ", ".join(MODES[mode] for mode in supported) or text or "the driver shows no mode"
    together = any(mode != ALONE for mode in supported)
    problem = f"the node finds no other node of its UltraServer over NeuronLink: {found}"
    check = Check("ultraserver", f"{nodes} nodes", found, together, problem)
    return [check if together else check.warned()]
