"""A node in a folder for the shell's part of a boot: the real scripts and coreutils, with stand-ins for changes of the
machine.

A stand-in also replaces `trn-node`, which has its own tests. The lab boots whole nodes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.shared import made_once
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import NodeFiles
from tests.userdata.parts import parts_of, script_of
from tests.userdata.plans import LOCATIONS
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.script import node_script, node_user_data

PROGRAMS = (
    *("awk", "base64", "bash", "cat", "chmod", "cp", "cut", "date", "dirname", "env", "false", "grep"),
    *("head", "install", "mkdir", "mv", "paste", "readlink", "rm", "sed", "sh", "sha256sum", "sleep"),
    *("sort", "sync", "tail", "tee", "timeout", "touch", "tr", "true", "uname"),
)
"""Every program that a node on a Neuron DLAMI may call besides the stand-ins. All are in Ubuntu 24.04 and Amazon
Linux.
"""

SCRIPT_OBJECT = (LOCATIONS.node_script_url or "").removeprefix("s3://")


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a script ended, and its calls of stand-ins, in order."""

    exit_code: int
    output: str
    calls: list[str]


class BootingNode(NodeFiles):
    """A healthy node of the plan, with the devices of the plan, until a test changes something."""

    def __init__(self, folder: Path, plan: Plan, aws: AwsStandIn) -> None:
        super().__init__(folder / "root", folder / "programs")
        self.plan, self.aws = plan, aws
        for name in PROGRAMS:
            program = shutil.which(name)
            assert program, f"{name} is not installed here"
            (self.programs / name).symlink_to(program)
        (self.programs / "python3").symlink_to(sys.executable)
        for folder_name in ("dev", "etc/profile.d", "etc/security/limits.d", "etc/sysctl.d", "usr/lib/sysctl.d"):
            (self.root / folder_name).mkdir(parents=True)
        self.write("var/log/trn-node.log")
        self.write("proc/sys/net/ipv4/ip_local_reserved_ports", "\n")
        self.write("var/lib/cloud/data/instance-id", INSTANCE_ID + "\n")
        self.record_calls("systemctl", '[[ "$1" != is-enabled ]]')
        self.record_calls("systemd-sysusers")
        self.record_calls("mount")
        self.record_calls("mount.lustre")
        self.record_calls("mount.nfs4")
        self.record_calls("rmmod")
        self.record_calls("modprobe")
        self.program("mountpoint", "false")
        self.program("pgrep", "false")
        self.program("blkid", "false")
        self._document = node_user_data(node_settings(plan), LOCATIONS)
        (locations,) = yaml.safe_load(parts_of(self._document)["text/cloud-config"])["write_files"]
        self.write(locations["path"].lstrip("/"), locations["content"])
        self.fetch_script = script_of(self._document)
        self.aws.records[SCRIPT_OBJECT] = node_script(node_settings(plan))

    def record_calls(self, name: str, body: str = "true") -> None:
        """Put a stand-in for a program where the node finds it. `Run.calls` lists its calls."""
        self.program(name, f'echo "{name} $*" >>"$ROOT/calls"\n{body}')

    def without(self, name: str) -> None:
        (self.programs / name).unlink()

    def replace_trn_node(self, body: str = "true") -> None:
        """Put a stand-in for `trn-node` on an installed node.

        It prints the variable FRAMEWORK for `trn-node framework`, and CACHE_URL for `trn-node cache-url`.
        """
        framework = (
            '[[ $1 != framework ]] || { echo "${FRAMEWORK:-}"; exit 0; }\n'
            '[[ $1 != cache-url ]] || { echo "${CACHE_URL:-}"; exit 0; }'
        )
        call = 'echo "trn-node $*" >>"$ROOT/calls"'
        self.write("usr/local/bin/trn-node", f"#!/bin/bash\n{framework}\n{call}\n{body}\n", mode=0o755)

    def install(self) -> Run:
        """Run the commands of cloud-init."""
        self.write("user-data", self.fetch_script)
        return self._run("user-data")

    def boot(self, **variables: str) -> Run:
        """Run the commands of trn-node.service on an installed node, with these environment variables."""
        return self._run("opt/trn/boot.sh", **variables)

    def install_copy(self, trn_node: str = "true") -> "BootingNode":
        """Install the files of the plan, and a stand-in for `trn-node` with this body.

        The real installation runs once per run of pytest, because its files depend only on the user data.
        """
        installed = made_once(f"installed node {self._document}", self._install_another)
        shutil.copytree(installed, self.root, dirs_exist_ok=True)
        self.replace_trn_node(trn_node)
        return self

    def _install_another(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            node = BootingNode(Path(place), self.plan, self.aws)
            run = node.install()
            assert run.exit_code == 0, run.output
            shutil.copytree(node.root, folder, dirs_exist_ok=True)

    def _run(self, script: str, **variables: str) -> Run:
        (self.root / "calls").unlink(missing_ok=True)
        run = subprocess.run(
            ["bash", str(self.root / script)],
            cwd=self.root,
            env={
                "PATH": str(self.programs),
                "ROOT": str(self.root),
                "TRN_RETRY_PAUSE": "0",
                "TRN_MOUNT_SECONDS": "30",
                "TRN_HTTP_RETRIES": "1",
                "TRN_HTTP_PAUSE": "0.01",
                **self.aws.loopback_environment,
                **variables,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        calls = self.read("calls").splitlines() if (self.root / "calls").exists() else []
        return Run(exit_code=run.returncode, output=run.stdout + os.linesep + run.stderr, calls=calls)
