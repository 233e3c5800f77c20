"""The file system that every node starts from: the packages of packages/node.txt, from this machine's apt sources.

Built once with `python -m tools.lab.base_rootfs` and kept in .lab/ under a name derived from its inputs.
"""

import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.lab.paths import FOLDER
from tools.lab.shell import run

PACKAGES = Path(__file__).parent / "packages" / "node.txt"
DISTRIBUTIONS = ("Debian", "Ubuntu")

CLOUD_INIT = """\
# systemd-nspawn gives no DMI: without these cloud-init would take the node for no instance of EC2.
datasource_list: [Ec2]
datasource: {Ec2: {strict_id: false, max_wait: 30, timeout: 10}}
network: {config: disabled}
# Not installed here.
locale: C.UTF-8
ssh_genkeytypes: [ed25519]
"""

MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "systemd-timesyncd.service")


def base_rootfs() -> Path:
    """The path of the base root file system, once it is built."""
    made_from = "\n".join([PACKAGES.read_text(), Path(__file__).read_text(), *_sources()])
    return FOLDER / f"root-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"


def build_base_rootfs() -> None:
    """Build the base root file system unless it exists. Delete those that were built from other inputs."""
    root, sources = base_rootfs(), _sources()
    if root.is_dir():
        return
    for old in FOLDER.glob("root-*"):
        shutil.rmtree(old)
    unfinished = FOLDER / "unfinished-root"
    shutil.rmtree(unfinished, ignore_errors=True)
    FOLDER.mkdir(exist_ok=True)
    run(
        *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES.read_text().split())}"),
        *("--aptopt=Apt::Install-Recommends false", sources[0].split()[2], unfinished, *sources),
    )
    _finish(unfinished)
    unfinished.rename(root)


def _sources() -> Sequence[str]:
    """This machine's own package sources, limited to its distribution's."""
    form = "$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    targets = run("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines()
    lines = (target.split(maxsplit=1) for target in targets)
    found = sorted({line for origin, line in lines if origin in DISTRIBUTIONS}, key=lambda line: (len(line), line))
    if not found:
        sys.exit(f"apt on this machine has no packages of {' or '.join(DISTRIBUTIONS)}: run apt-get update")
    return found


def _finish(root: Path) -> None:
    # Remove what mmdebstrap copied from this machine, and package sources that a node cannot reach.
    for name in ("etc/hostname", "etc/resolv.conf"):
        (root / name).unlink(missing_ok=True)
    for source in (root / "etc/apt/sources.list", *(root / "etc/apt/sources.list.d").iterdir()):
        source.unlink(missing_ok=True)
    (root / "etc/machine-id").write_text("")
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc/cloud/cloud.cfg.d/99-trnlab.cfg").write_text(CLOUD_INIT)
    units = root / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")


if __name__ == "__main__":
    build_base_rootfs()
