"""Which processes of this node hold a Neuron device: whatever uses a NeuronCore has its device file open."""

from __future__ import annotations

import os
import re
from pathlib import Path

from . import files
from .hardware import DEVICES

OBSERVERS = {"neuron-monitor", "neuron-top", "neuron-ls"}
"""Programs of Neuron that open devices and compute nothing."""


def device_users() -> list[str]:
    """Names and ids of the processes that hold a device. Raises OSError where that cannot be known."""
    if not any(files.path(DEVICES).glob("neuron*")):
        raise OSError("the driver shows no Neuron device")
    found: list[str] = []
    for folder in files.path("proc").glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text().strip()
            if name not in OBSERVERS and holds_a_device(folder):
                found.append(f"{name} ({folder.name})")
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    return sorted(found)


def holds_a_device(process: Path) -> bool:
    """process: its folder in /proc. Raises OSError."""
    with os.scandir(process / "fd") as entries:
        return any(re.match(r"/dev/neuron\d", os.readlink(entry)) for entry in entries)  # noqa: PTH115
