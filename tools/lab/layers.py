"""The read-only layers of a node's disk above the base: its hardware, and the software of its DLAMI."""

import re
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.lab.neuron_software import EFA_PROGRAM, PATH_ON_NODE, default_image, wrapper
from tools.lab.paths import REPOSITORY
from tools.lab.shell import run

STAND_INS = Path(__file__).parent / "stand_ins"
FRAMEWORK = STAND_INS / "framework"
FRAMEWORK_ENVIRONMENT = "opt/aws_neuronx_venv_" + re.sub("[-.]", "_", default_image()["parameter"].partition("/")[0])
GPU_FRAMEWORK_ENVIRONMENT = "opt/pytorch"
NEURON_LS_SAMPLES = REPOSITORY / "tests/userdata/data/neuron_ls.json"

# The user data identifies the distribution by this file: every node claims to have Ubuntu 24.04.
OS_RELEASE = """\
PRETTY_NAME="Ubuntu 24.04 LTS (a stand-in of the node lab)"
NAME="Ubuntu"
ID=ubuntu
ID_LIKE=debian
VERSION_ID="24.04"
VERSION_CODENAME=noble
"""

POWER_ON_UNIT = """\
[Unit]
Description=What the kernel finds on the hardware of this node
DefaultDependencies=no
Before=cloud-init-local.service sysinit.target

[Service]
Type=oneshot
ExecStart=/usr/lib/trnlab/power_on.py
"""

# Mounts the local disks. They are in memory.
DISKS_UNIT = """\
[Unit]
Description=Mount the local disks
DefaultDependencies=no

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/trnlab/mount_disks.py {folder}

[Install]
WantedBy=multi-user.target
"""


def write_hardware_layer(folder: Path) -> Path:
    """Write the layer of every node, with or without Neuron software."""
    shutil.copytree(STAND_INS, folder / PATH_ON_NODE.lstrip("/"), ignore=shutil.ignore_patterns(FRAMEWORK.name))
    for program in (folder / PATH_ON_NODE.lstrip("/")).glob("*.py"):
        program.chmod(0o755)
    write_file(folder, "usr/share/trnlab/neuron_ls.json", NEURON_LS_SAMPLES.read_text())
    for name in ("modprobe", "modinfo", "rmmod"):
        write_file(folder, f"usr/sbin/{name}", wrapper("kernel_modules", name))
    write_file(folder, "usr/bin/chronyc", wrapper("chronyc"))
    write_file(folder, "usr/local/bin/df", wrapper("df"))
    write_file(folder, "usr/lib/os-release", OS_RELEASE)
    write_unit(folder, "trnlab-hardware.service", POWER_ON_UNIT, wanted_by="sysinit.target")
    return folder


def write_bare_layer(folder: Path) -> Path:
    """Write the layer of a node without Neuron software, which mounts the local disks: they are not block devices."""
    write_unit(folder, "trnlab-disks.service", DISKS_UNIT.format(folder="/scratch"), wanted_by="sysinit.target")
    return folder


def write_image_layer(folder: Path, work: Path, *, below: Sequence[Path], packages: Sequence[Path]) -> Path:
    """Write the layer of a Neuron DLAMI: EFA, PyTorch, and packages, which dpkg installs over the layers below.

    Args:
        below: The layers below, the base last.
    """
    folder.mkdir(parents=True)
    with _merged(folder, work, below) as root:
        aside = root / "trnlab"
        aside.mkdir()
        for package in packages:
            shutil.copy(package, aside)
        run("chroot", root, "sh", "-c", "dpkg --install /trnlab/*.deb")
        shutil.rmtree(aside)
    write_file(folder, EFA_PROGRAM, wrapper("fi_info"))
    write_file(folder, "usr/sbin/mount.lustre", wrapper("mount_lustre"))
    _write_framework(folder / FRAMEWORK_ENVIRONMENT, base=below[-1])
    write_file(folder, f"{FRAMEWORK_ENVIRONMENT}/bin/torchrun", wrapper("torchrun"))
    write_unit(folder, "dlami-nvme.service", DISKS_UNIT.format(folder="/opt/dlami/nvme"), wanted_by="multi-user.target")
    return folder


def write_gpu_image_layer(folder: Path, *, base: Path) -> Path:
    """Write the layer of a GPU DLAMI for a node with one GPU: NVIDIA's programs and PyTorch."""
    write_file(folder, "usr/bin/nvidia-smi", wrapper("nvidia_smi"))
    write_file(folder, "usr/bin/dcgmi", wrapper("dcgmi"))
    _write_framework(folder / GPU_FRAMEWORK_ENVIRONMENT, base=base)
    write_unit(folder, "dlami-nvme.service", DISKS_UNIT.format(folder="/opt/dlami/nvme"), wanted_by="multi-user.target")
    return folder


def _write_framework(environment: Path, *, base: Path) -> None:
    """Write a virtual environment with a stand-in for PyTorch, which uses the node's Python."""
    python = next((base / "usr/lib").glob("python3.*")).name
    shutil.copytree(FRAMEWORK, environment / "lib" / python / "site-packages")
    write_file(environment, "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n", mode=0o644)
    (environment / "bin").mkdir()
    (environment / "bin/python").symlink_to("/usr/bin/python3")


@contextmanager
def _merged(upper: Path, work: Path, below: Sequence[Path]) -> Generator[Path]:
    """The layers as one file system, whose changes are written to `upper`."""
    root, scratch = work / "root", work / "scratch"
    for path in (root, scratch):
        path.mkdir(parents=True)
    lower = ":".join(str(layer) for layer in below)
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={scratch}", root)
    try:
        yield root
    finally:
        run("umount", root)


def write_unit(folder: Path, name: str, text: str, *, wanted_by: str) -> None:
    """Write a systemd unit and enable it."""
    write_file(folder, f"etc/systemd/system/{name}", text, mode=0o644)
    link = folder / f"etc/systemd/system/{wanted_by}.wants/{name}"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../{name}")


def write_file(folder: Path, path: str, text: str, *, mode: int = 0o755) -> None:
    """Write a file of a layer.

    Args:
        path: Path relative to the root of the file system.
    """
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
