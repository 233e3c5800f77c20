"""Checks whether this machine can run the lab. If not, `python -m tools.lab.machine` prints why and exits with 2."""

import os
import subprocess
import sys
from pathlib import Path

from tools.lab.paths import PREFIX

CONTROL_GROUPS = Path("/sys/fs/cgroup")
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")
"""Runs another command in separate namespaces. When that command ends, its processes, mounts and links end too."""

CANNOT_RUN = 2
OVERLAY = """
mount -t tmpfs none /mnt && mkdir /mnt/{lower,upper,work} &&
mount -t overlay none -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt
"""
SYS_RESOURCE = 24
"""Number of the capability, see capabilities(7)."""


def missing_requirement() -> str | None:
    """Why the lab cannot run here, as a sentence with what to do; None if it can."""
    if os.geteuid() != 0:
        return "the node lab boots nodes and needs root for their namespaces; run it as root: sudo make lab"
    if not _succeeds(*NAMESPACES, "true"):
        return "this machine does not let root make namespaces (a container without privileges?); use a virtual machine"
    if not hierarchies():
        return f"systemd on nodes cannot make control groups below {CONTROL_GROUPS}; use a virtual machine"
    if not _succeeds(*NAMESPACES, "bash", "-c", OVERLAY):
        return "this machine's kernel refuses the overlay mounts of the nodes' disks; use a virtual machine"
    if not _succeeds("sh", "-c", "command -v apt-get"):
        return "apt-get is missing: the lab builds its nodes from packages of Debian or Ubuntu; run it on one of these"
    return None


def hierarchies() -> tuple[Path, ...]:
    """The writable control group hierarchies in which systemd on a node looks for itself."""
    split = [CONTROL_GROUPS / name for name in ("systemd", "unified") if (CONTROL_GROUPS / name).is_dir()]
    return tuple(folder for folder in split or [CONTROL_GROUPS] if _takes_groups(folder))


def may_raise_limits() -> bool:
    """Whether root may raise its own hard limits here (CAP_SYS_RESOURCE). Otherwise a node cannot have EC2's limits."""
    status = Path("/proc/self/status").read_text()
    capabilities = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    return bool(capabilities >> SYS_RESOURCE & 1)


def _takes_groups(folder: Path) -> bool:
    group = folder / f"{PREFIX}probe"
    try:
        group.mkdir(exist_ok=True)
        group.rmdir()
    except OSError:
        return False
    return True


def _succeeds(*words: str) -> bool:
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    if sentence := missing_requirement():
        print(sentence, file=sys.stderr)
        sys.exit(CANNOT_RUN)
