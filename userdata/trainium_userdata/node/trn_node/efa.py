"""Elastic Fabric Adapters, and libfabric."""

from __future__ import annotations

import re
from typing import Any

from . import files
from .check import HOST, Check, check
from .programs import run

SECONDS = 60


def check_efa(plan: dict[str, Any]) -> list[Check]:
    expected = plan["efa_devices"]
    folder = files.path("sys/class/infiniband")
    found = len(list(folder.iterdir())) if folder.is_dir() else 0
    devices = check("efa-devices", str(expected), str(found), f"{found} of {expected} EFA devices")
    # libfabric is in the image of the pods.
    with_libfabric = expected and plan.get("scope") != HOST
    return [devices, *check_libfabric(expected)] if with_libfabric else [devices]


def check_libfabric(expected: int) -> list[Check]:
    """The provider, and the number of devices that it opens. Too few are only a warning, because the check efa-devices
    counts the devices in the kernel."""
    ran = run("fi_info", "-p", "efa", seconds=SECONDS)
    # Each interface in the output begins with this line.
    there = not ran.error and re.search(r"^\s*provider:\s*efa\b", ran.out, re.MULTILINE)
    found = "efa" if there else ran.error or "fi_info lists no provider efa"
    provider = check("efa-provider", "efa", found, f"libfabric does not find the EFA provider: {found}")
    if not there:
        return [provider]
    opened = str(len(domains(ran.out)))
    problem = f"libfabric opens {opened} of {expected} EFA devices (domains of fi_info -p efa)"
    opens = check("efa-domains", str(expected), opened, problem)
    return [provider, opens if opens.ok else opens.warned()]


def domains(listed: str) -> set[str]:
    """The devices in the output of fi_info, which lists each for every fabric and endpoint type."""
    return {name.rsplit("-", 1)[0] for name in re.findall(r"^\s*domain:\s*(\S+)", listed, re.MULTILINE)}
