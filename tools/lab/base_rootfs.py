"""The root file systems of the lab and of `make bare`, built once with `python3 -m tools.lab.base_rootfs NAME...`.

Prints their folders. Each is in .lab/, under a name that depends on its packages, its package sources and this module.
`node_rootfs` and `bare_rootfs` have this machine's distribution. The nodes and the controller of a Slurm cluster have
`slurm_rootfs`. `prometheus_rootfs` has the programs of Prometheus, which the lab runs without their service.
"""

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.lab.paths import FOLDER
from tools.lab.shell import run

PACKAGES = Path(__file__).parent / "packages"
DISTRIBUTIONS = ("Debian", "Ubuntu")

SLURM_SUITE = "forky"
"""Debian testing. It has Slurm 26.05, the default of `trn:pcs_slurm_version`."""

DEBIAN = "http://deb.debian.org/debian"
DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

CLOUD_INIT = """\
# systemd-nspawn provides no DMI data: without these lines, cloud-init would not recognise an EC2 instance.
datasource_list: [Ec2]
datasource: {Ec2: {strict_id: false, max_wait: 30, timeout: 10}}
network: {config: disabled}
# Other locales are not installed.
locale: C.UTF-8
ssh_genkeytypes: [ed25519]
"""

BARE_USER = "tester"

MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "systemd-timesyncd.service")


@dataclass(frozen=True, kw_only=True)
class RootFileSystem:
    """A root file system.

    Attributes:
        lists: Files in packages/ that list its packages.
        sources: Lines of an apt source list.
        finish: Changes the installed file system.
        variant: Which packages mmdebstrap adds. With `extract`, it only unpacks the listed packages and what they need.
    """

    name: str
    lists: Sequence[str]
    sources: Sequence[str]
    finish: Callable[[Path], None]
    variant: str = "minbase"

    @property
    def folder(self) -> Path:
        """The location of the file system, once it is built."""
        made_from = "\n".join([self._packages, Path(__file__).read_text(), *self.sources])
        return FOLDER / f"{self.name}-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"

    def build(self) -> None:
        """Build the file system if it does not exist, and delete outdated ones with the same name."""
        folder = self.folder
        if folder.is_dir():
            return
        for old in FOLDER.glob(f"{self.name}-*"):
            shutil.rmtree(old)
        unfinished = FOLDER / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        FOLDER.mkdir(exist_ok=True)
        run(
            *("mmdebstrap", "--quiet", f"--variant={self.variant}", f"--include={','.join(self._packages.split())}"),
            # The Release file of a mirror may have expired.
            *("--aptopt=Apt::Install-Recommends false", "--aptopt=Acquire::Check-Valid-Until false"),
            *(self.sources[0].split()[-2], unfinished, *self.sources),
        )
        _remove_settings_of_this_machine(unfinished)
        self.finish(unfinished)
        unfinished.rename(folder)

    @property
    def _packages(self) -> str:
        return "\n".join((PACKAGES / name).read_text() for name in self.lists)


def node_rootfs() -> RootFileSystem:
    """The root file system of nodes: this machine's distribution, from its package sources."""
    return RootFileSystem(name="root", lists=["node.txt"], sources=_sources(), finish=_finish_node)


def slurm_rootfs() -> RootFileSystem:
    """The root file system of a Slurm cluster's nodes and controller, from Debian on every machine."""
    source = f"deb [signed-by={DEBIAN_KEYS}] {DEBIAN} {SLURM_SUITE} main"
    return RootFileSystem(name="slurm", lists=["node.txt", "slurm.txt"], sources=[source], finish=_finish_node)


def prometheus_rootfs() -> RootFileSystem:
    """Prometheus and promtool of this machine's distribution, which run on this machine."""
    return RootFileSystem(
        name="prometheus",
        lists=["prometheus.txt"],
        sources=_sources(),
        finish=lambda _: None,
        variant="extract",
    )


def bare_rootfs() -> RootFileSystem:
    """The root file system of `make bare`: this machine's distribution with the packages that README requires."""
    return RootFileSystem(name="bare", lists=["bare.txt"], sources=_sources(), finish=_finish_bare)


def _sources() -> Sequence[str]:
    """This machine's own package sources, limited to its distribution's."""
    form = "$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    targets = run("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines()
    lines = (target.split(maxsplit=1) for target in targets)
    choices = sorted({line for origin, line in lines if origin in DISTRIBUTIONS}, key=lambda line: (len(line), line))
    if not choices:
        sys.exit(f"apt on this machine has no packages of {' or '.join(DISTRIBUTIONS)}: run apt-get update")
    return choices


def _remove_settings_of_this_machine(root: Path) -> None:
    """Remove what mmdebstrap copied from this machine, and package sources that a node cannot reach."""
    for name in ("etc/hostname", "etc/resolv.conf"):
        (root / name).unlink(missing_ok=True)
    for source in (root / "etc/apt/sources.list", *(root / "etc/apt/sources.list.d").iterdir()):
        source.unlink(missing_ok=True)


def _finish_node(root: Path) -> None:
    (root / "etc/machine-id").write_text("")
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc/cloud/cloud.cfg.d/99-trnlab.cfg").write_text(CLOUD_INIT)
    units = root / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")


def _finish_bare(root: Path) -> None:
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", BARE_USER)


if __name__ == "__main__":
    for rootfs in (node_rootfs(), slurm_rootfs(), prometheus_rootfs(), bare_rootfs()):
        if rootfs.name in sys.argv[1:]:
            rootfs.build()
            print(rootfs.folder)
