"""The layers of a Slurm cluster's nodes: the base with Slurm, the hardware, the Neuron image, and the PCS agent."""

from collections.abc import Sequence
from pathlib import Path

from tools.lab.base_rootfs import slurm_rootfs
from tools.lab.laboratory import Laboratory
from tools.lab.layers import write_file, write_image_layer, write_unit
from tools.lab.paths import RUN
from tools.lab.slurm.configuration import POWER_FOLDER, RESUME_PROGRAM, SUSPEND_PROGRAM

USERS = {"ada": 2001, "ben": 2002}
"""Users of the cluster, and their UIDs and GIDs on all nodes."""

HOMES = "/shared"
"""Mount point of the shared file system, which has the home directories."""

_AGENT_UNIT = """\
[Unit]
Description=The stand-in for the AWS PCS agent
After=cloud-final.service trnlab-hardware.service
ConditionPathExists=/etc/trnlab/pcs.json

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/trnlab/pcs_agent.py
StandardError=journal+console
"""

# Debian starts slurmd at boot. On AWS PCS, the agent starts slurmd after the lifecycle scripts.
_AGENT_STARTS_SLURMD = """\
[Unit]
ConditionPathExists=/run/trnlab-slurmd

[Service]
EnvironmentFile=/run/trnlab-slurmd
"""

_POWER_PROGRAM = """\
#!/bin/sh
scontrol show hostnames "$1" | sed 's/^/{action} /' >>{folder}/power
"""


def slurm_layers(lab: Laboratory) -> Sequence[Path]:
    """The layers of nodes and of the controller."""
    base = slurm_rootfs().folder
    below = [lab.hardware, base]
    folder = RUN / "slurm"
    image = write_image_layer(
        folder / "image", folder / "image-work", below=below, packages=lab.package_hosts.image_packages
    )
    return [_slurm_layer(folder / "slurm", base), image, *below]


def _slurm_layer(folder: Path, base: Path) -> Path:
    write_unit(folder, "trnlab-pcs-agent.service", _AGENT_UNIT, wanted_by="cloud-init.target")
    write_file(folder, "etc/systemd/system/slurmd.service.d/agent.conf", _AGENT_STARTS_SLURMD, mode=0o644)
    for action, program in (("resume", RESUME_PROGRAM), ("suspend", SUSPEND_PROGRAM)):
        write_file(folder, program.lstrip("/"), _POWER_PROGRAM.format(action=action, folder=POWER_FOLDER))
    people = (base / "etc/passwd").read_text(), (base / "etc/group").read_text()
    users = "".join(f"{name}:x:{number}:{number}::{HOMES}/{name}:/bin/bash\n" for name, number in USERS.items())
    groups = "".join(f"{name}:x:{number}:\n" for name, number in USERS.items())
    write_file(folder, "etc/passwd", people[0] + users, mode=0o644)
    write_file(folder, "etc/group", people[1] + groups, mode=0o644)
    return folder
