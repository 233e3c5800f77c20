#!/usr/bin/python3
"""Runs df, with the size of the instance type's disks for the local disks, which have a limit instead."""

import subprocess
import sys

from node_hardware import LOCAL_DISKS, description

DF = "/usr/bin/df"

words = sys.argv[1:]
done = subprocess.run([DF, *words], stdout=subprocess.PIPE, text=True, check=False)
output = done.stdout
if words[:2] == ["-B1", "--output=size,target"]:
    source = subprocess.run([DF, "--output=source", words[-1]], capture_output=True, text=True, check=False).stdout
    if source.split()[-1:] == [LOCAL_DISKS]:
        hardware = description()
        head, row = output.splitlines()
        output = f"{head}\n{hardware['nvme_disks'] * hardware['nvme_disk_gb'] * 10**9} {row.split()[-1]}\n"
print(output, end="")
sys.exit(done.returncode)
