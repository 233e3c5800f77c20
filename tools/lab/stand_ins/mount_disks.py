#!/usr/bin/python3
"""Mounts the local disks as one at a folder. They are in memory, and only their size is simulated."""

import subprocess
import sys
from pathlib import Path

from node_hardware import description

hardware, folder = description(), Path(sys.argv[1])
if hardware["nvme_disks"]:
    folder.mkdir(parents=True, exist_ok=True)
    size = hardware["nvme_disks"] * hardware["nvme_disk_gb"] * 10**9
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "trnlab", str(folder)], check=True)
