#!/usr/bin/python3
"""Mounts one file system for the local disks at a folder. It is in memory, so it has a limit. df shows their size."""

import subprocess
import sys
from pathlib import Path

from node_hardware import LOCAL_DISKS, description

hardware, folder = description(), Path(sys.argv[1])
if hardware["nvme_disks"]:
    folder.mkdir(parents=True, exist_ok=True)
    size = hardware["nvme_limit_bytes"]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", LOCAL_DISKS, str(folder)], check=True)
