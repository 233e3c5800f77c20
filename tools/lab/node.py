"""A node: a systemd-nspawn machine with its own systemd, network, file system and power switch."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.lab import network
from tools.lab.certificates import Certificates
from tools.lab.hardware import Hardware
from tools.lab.instance import Instance
from tools.lab.machine import hierarchies
from tools.lab.paths import PREFIX, RUN
from tools.lab.shell import CommandError, run

DISK_SIZE = "512m"
REBOOT = 133
"""Exit code of systemd-nspawn when the node asked for a reboot."""
START_SECONDS = 120
STOP_SECONDS = 60
POWER_BUTTON = signal.SIGRTMIN + 4


class Node:
    """One instance's machine. Its disk keeps its contents when it is powered off, until `remove`.

    Args:
        layers: Read-only folders that form its disk as delivered, the uppermost first.
    """

    def __init__(self, instance: Instance, hardware: Hardware, *, layers: Sequence[Path], folder: Path) -> None:
        self.instance = instance
        self.name = f"{PREFIX}{RUN.name}-{instance.instance_id}"
        self.folder = folder / instance.instance_id
        self.root = self.folder / "root"
        self.console = self.folder / "console"
        self.written = self.folder / "disk/upper"
        """The changes to its disk, above the layers: itself a layer, for a node from an image of this one."""
        self.shared: dict[str, Path] = {}
        """Folders of this machine by their place on the node, read-only, after its next start."""
        self.file_systems: dict[str, Path] = {}
        """Shared file systems: folders of this machine by their mount point on the node, after its next start."""
        self.unified_control_groups = False
        """Whether the node sees version 2 of control groups only, which new versions of systemd require."""
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._supervisor: threading.Thread | None = None
        self._stopping = False
        self.powered_on_at = 0.0
        """When it was last powered on, in seconds since 1970; 0 before that."""
        self._prepare_disk(layers)
        self.fit(hardware)
        network.connect(self.name, instance.address)

    def fit(self, hardware: Hardware) -> None:
        """Change its hardware from its next start on. Stand-ins of programs see the change at once."""
        self.write("etc/trnlab/hardware.json", json.dumps(hardware.description()))
        shutil.rmtree(self.root / "etc/trnlab/sys", ignore_errors=True)
        for path, text in hardware.sysfs().items():
            self.write(f"etc/trnlab/sys/{path}", text)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """Set variables of every service from its next start on."""
        values = " ".join(f'"{name}={value}"' for name, value in variables.items())
        self.write("etc/systemd/system.conf.d/00-trnlab.conf", f"[Manager]\nDefaultEnvironment={values}\n")

    def trust(self, certificates: Certificates) -> None:
        folder = self.root / "etc/ssl/certs"
        authority = certificates.authority.read_text()
        (folder / certificates.authority_link).write_text(authority)
        with (folder / "ca-certificates.crt").open("a") as bundle:
            bundle.write(authority)

    def power_on(self) -> None:
        """Start the machine, and start it again whenever it reboots."""
        self._stopping = False
        self.powered_on_at = time.time()
        self._nspawn = self._start()
        self._supervisor = threading.Thread(target=self._restart_on_reboot, daemon=True)
        self._supervisor.start()

    @property
    def is_on(self) -> bool:
        """Whether it is powered on."""
        return bool(self._nspawn) and not self._stopping

    def power_off(self) -> None:
        """Press the power button and wait. Cuts the power if the node does not shut down."""
        self._end(POWER_BUTTON)

    def cut_power(self) -> None:
        """Cut the power without a shutdown."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Stop the node, and delete its network and its disk. Its console is kept."""
        self.cut_power()
        network.disconnect(self.name, self.instance.address)
        run("umount", "--lazy", self.root)
        run("umount", "--lazy", self.folder / "disk")

    def execute(self, *command: str) -> str:
        """Run a program on the node, and return its output.

        Raises:
            CommandError: The program failed.
        """
        return run("nsenter", "--target", str(self._leader()), "-m", "-u", "-i", "-n", "-p", "-C", *command)

    def succeeds(self, *command: str) -> bool:
        """Whether a program on the node ends with 0."""
        try:
            self.execute(*command)
        except CommandError:
            return False
        return True

    def read(self, path: str) -> str:
        """The text of a file on its disk. /run and other file systems in its memory are not included."""
        return (self.root / path.lstrip("/")).read_text(errors="replace")

    def console_text(self) -> str:
        """Everything on its console since it was delivered."""
        return self.console.read_text(errors="replace")

    def _prepare_disk(self, layers: Sequence[Path]) -> None:
        disk = self.folder / "disk"
        disk.mkdir(parents=True)
        run("mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", self.name, disk)
        for folder in (self.written, disk / "work"):
            folder.mkdir()
        self.root.mkdir()
        lower = ":".join(str(layer) for layer in layers)
        options = f"lowerdir={lower},upperdir={self.written},workdir={disk / 'work'}"
        run("mount", "-t", "overlay", "overlay", "-o", options, self.root)
        self.write("etc/hosts", "127.0.0.1 localhost\n")
        self.write("etc/resolv.conf", f"nameserver {network.SERVICES}\n")

    def _start(self) -> subprocess.Popen[bytes]:
        join = ""
        for hierarchy in hierarchies():
            group = hierarchy / self.name
            group.mkdir(exist_ok=True)
            join += f"echo $$ >{group}/cgroup.procs; "
        nspawn = [
            *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--machine={self.name}"),
            *(f"--network-namespace-path=/run/netns/{self.name}", f"--hostname={self.instance.host_name}"),
            *("--link-journal=no", "--resolv-conf=off", "--timezone=off", "--console=read-only"),
            *(f"--bind-ro={folder}:{place}" for place, folder in self.shared.items()),
            *(f"--bind={folder}:{place}" for place, folder in self.file_systems.items()),
            *(f"--directory={self.root}", "--boot", "systemd.log_target=console", "systemd.show_status=1"),
        ]
        # As on EC2, a node may change kernel settings, but only of its own network namespace.
        options = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
        if self.unified_control_groups:
            options["SYSTEMD_NSPAWN_UNIFIED_HIERARCHY"] = "1"
        with self.console.open("ab") as output:
            return subprocess.Popen(
                ["bash", "-c", join + 'exec "$@"', "bash", *nspawn],
                env={**os.environ, **options},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _restart_on_reboot(self) -> None:
        while self._nspawn and self._nspawn.wait() == REBOOT and not self._stopping:
            self._nspawn = self._start()

    def _end(self, signal_number: int) -> None:
        self._stopping = True
        if self._nspawn and self._nspawn.poll() is None:
            # Ending nspawn itself would leave the node running.
            with contextlib.suppress(CommandError, ProcessLookupError):
                os.kill(self._leader(), signal_number)
            try:
                self._nspawn.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.kill(self._leader(), signal.SIGKILL)
                self._nspawn.wait(STOP_SECONDS)
        if self._supervisor:
            self._supervisor.join()

    def _leader(self) -> int:
        """The ID, on this machine, of the process with ID 1 on the node."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._nspawn:
            nspawn = self._nspawn.pid
            with contextlib.suppress(OSError):
                for child in Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split():
                    if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                        return int(child)
            time.sleep(0.02)
        raise CommandError(f"{self.name} did not start\n{self.console_text()}")
