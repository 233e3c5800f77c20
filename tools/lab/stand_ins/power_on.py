#!/usr/bin/python3
"""Makes what the kernel finds when the node is powered on: devices, disks, and the driver if it is installed."""

import subprocess
from pathlib import Path

from node_hardware import description, load_driver

SYSFS = Path("/run/trnlab")
LOCAL_DISK = "Amazon_EC2_NVMe_Instance_Storage"


def show_sysfs() -> None:
    """Overlay /sys with the writable files of /etc/trnlab/sys, except for control groups."""
    for name in ("sys", "upper", "work"):
        (SYSFS / name).mkdir(parents=True)
    layers = f"lowerdir=/etc/trnlab/sys:/sys,upperdir={SYSFS / 'upper'},workdir={SYSFS / 'work'}"
    for command in (
        ["mount", "-t", "overlay", "-o", layers, "none", str(SYSFS / "sys")],
        ["mount", "--rbind", "/sys/fs/cgroup", str(SYSFS / "sys/fs/cgroup")],
        ["mount", "--rbind", str(SYSFS / "sys"), "/sys"],
    ):
        subprocess.run(command, check=True)


def show_local_disks(count: int) -> None:
    links = Path("/dev/disk/by-id")
    links.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        disk = Path(f"/dev/trnlab-nvme{number}n1")
        disk.touch()
        (links / f"nvme-{LOCAL_DISK}_AWS{number:017X}").symlink_to(disk)


show_sysfs()
hardware = description()
show_local_disks(hardware["nvme_disks"])
if problem := load_driver():
    print(problem)
