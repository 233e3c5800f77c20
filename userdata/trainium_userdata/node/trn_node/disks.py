"""The instance's local disks and their mount point."""

from __future__ import annotations

from typing import Any

from . import files
from .check import Check
from .programs import run

SECONDS = 30
SHARE = 0.9
"""Minimum fraction of the disks' size, because file systems reserve a part of it."""


def check_nvme(plan: dict[str, Any]) -> list[Check]:
    count, size, folder = plan["nvme_disks"], plan["nvme_disk_gb"], plan.get("scratch")
    if not count or not folder:
        return []
    links = files.path("dev/disk/by-id").glob("nvme-Amazon_EC2_NVMe_Instance_Storage_*")
    disks = len({link.resolve() for link in links if "-part" not in link.name})
    expected = f"{count} x {size} GB at {folder}"
    if disks != count:
        return [Check("nvme", expected, f"{disks} of {count} disks", False, f"{disks} of {count} local NVMe disks")]
    df = run("df", "-B1", "--output=size,target", str(files.path(folder.lstrip("/"))), seconds=SECONDS)
    words = df.out.split("\n")[1].split(None, 1) if df.out.count("\n") > 1 else []
    if df.error or len(words) != 2 or not words[0].isdecimal():
        found = df.error or "df prints no size"
    elif words[1].strip() == str(files.path("")).rstrip("/") or words[1].strip() == "/":
        found = "not mounted"
    elif int(words[0]) < SHARE * count * size * 10**9:
        found = f"{int(words[0]) // 10**9} GB"
    else:
        return [Check("nvme", expected, f"{disks} of {count} disks, {int(words[0]) // 10**9} GB", True)]
    why = files.read("run/trn/scratch").strip()
    found = f"{found} ({why})" if why else found
    # A warning, because the disks exist and jobs can run without the folder.
    return [
        Check("nvme", expected, found, False, f"{folder} on the local disks: {found}, expected {expected}").warned()
    ]
