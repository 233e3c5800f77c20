#!/usr/bin/python3
"""Mounts one file system for the local disks at a folder. It is in memory, and has only the size of the disks."""

import subprocess
import sys
from pathlib import Path

from node_hardware import description

hardware, folder = description(), Path(sys.argv[1])
if hardware["nvme_disks"]:
    folder.mkdir(parents=True, exist_ok=True)
    size = hardware["nvme_disks"] * hardware["nvme_disk_gb"] * 10**9
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "trnlab", str(folder)], check=True)
