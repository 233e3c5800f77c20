"""Elastic Fabric Adapters and the library that uses them."""

from __future__ import annotations

import re
from typing import Any

from . import files
from .check import Check, check
from .programs import run

SECONDS = 60


def check_efa(plan: dict[str, Any]) -> list[Check]:
    expected = plan["efa_devices"]
    folder = files.path("sys/class/infiniband")
    found = len(list(folder.iterdir())) if folder.is_dir() else 0
    devices = check("efa-devices", str(expected), str(found), f"{found} of {expected} EFA devices")
    return [devices, check_provider()] if expected else [devices]


def check_provider() -> Check:
    ran = run("fi_info", "-p", "efa", seconds=SECONDS)
    # The prefix of each interface that it lists.
    there = not ran.trouble and re.search(r"^\s*provider:\s*efa\b", ran.out, re.MULTILINE)
    found = "efa" if there else ran.trouble or "fi_info lists no provider efa"
    return check("efa-provider", "efa", found, f"libfabric does not find the EFA provider: {found}")
