"""A node of files: a scratch root, stand-ins for the hardware's programs, and the real bash, curl and python3."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.neuron_ls import devices_of
from tests.userdata.plans import PLACES
from trainium_core.network_layout import network_interfaces
from trainium_core.node_record import NodeRecord
from trainium_core.plan import Plan
from trainium_userdata import node_user_data

PROGRAMS = ("bash", "cat", "curl", "date", "grep", "mkdir", "sha256sum", "sleep", "tail", "tee")
"""All that the script may call besides python3 and neuron-ls: each is part of Ubuntu 24.04 and Amazon Linux 2023."""

RECORD_KEY = f"{PLACES.report_url.removeprefix('s3://')}/{INSTANCE_ID}.json"


@dataclass(frozen=True, kw_only=True)
class Boot:
    """How one run of the user data ended."""

    exit_code: int
    log: str
    record: NodeRecord | None


class NodeStandIn:
    """A sound node of the plan, until a test breaks something."""

    def __init__(self, folder: Path, plan: Plan, aws: AwsStandIn) -> None:
        self.plan = plan
        self.aws = aws
        self.root = folder / "root"
        self.programs = folder / "programs"
        self.programs.mkdir(parents=True)
        for name in PROGRAMS:
            program = shutil.which(name)
            assert program, f"{name} is not installed here"
            (self.programs / name).symlink_to(program)
        (self.programs / "python3").symlink_to(sys.executable)
        self.write("etc/profile.d/.keep")
        self.write("etc/security/limits.d/.keep")
        self.write("etc/sysctl.d/.keep")
        self.write("var/log/.keep")
        self.write("proc/sys/net/ipv4/ip_local_reserved_ports", "\n")
        self.neuron_ls(devices_of(plan))
        self.efa_devices(sum(interface.interface_type is not None for interface in network_interfaces(plan)))

    def write(self, path: str, text: str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def neuron_ls(self, devices: list[dict[str, Any]], *, after_failures: int = 0, stderr: str = "") -> None:
        """Let neuron-ls list these devices, the first times fail with this message. It knows the one flag -j."""
        self.write("neuron_ls.json", json.dumps(devices))
        tries = self.root / "neuron_ls_tries"
        self.program(
            "neuron-ls",
            f"""[ "$*" = -j ] || {{ echo "unknown flag $*" >&2; exit 64; }}
echo try >>{tries}
[ "$(grep -c try {tries})" -gt {after_failures} ] || {{ echo '{stderr}' >&2; exit 1; }}
cat {self.root}/neuron_ls.json""",
        )

    def program(self, name: str, body: str) -> None:
        file = self.programs / name
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)

    def remove_program(self, name: str) -> None:
        (self.programs / name).unlink()

    def efa_devices(self, count: int) -> None:
        folder = self.root / "sys/class/infiniband"
        shutil.rmtree(folder, ignore_errors=True)
        for number in range(count):
            (folder / f"rdmap{number}s27").mkdir(parents=True)

    def boot(self, *, attempts: int = 1) -> Boot:
        """Run the user data to its end, with at most so many attempts to verify the devices."""
        script = self.root / "user-data"
        script.write_text(node_user_data(self.plan, PLACES))
        script.chmod(0o755)
        run = subprocess.run(
            [str(script)],
            cwd=self.root,
            env={
                "PATH": str(self.programs),
                "ROOT": str(self.root),
                "TRN_VERIFY_ATTEMPTS": str(attempts),
                "TRN_VERIFY_PAUSE": "0",
                "TRN_HTTP_RETRIES": "1",
                "TRN_HTTP_PAUSE": "1",
                **self.aws.environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        record = self.aws.records.get(RECORD_KEY)
        return Boot(
            exit_code=run.returncode,
            log=self.read("var/log/trn-node.log") + os.linesep + run.stderr,
            record=NodeRecord.from_json(record) if record else None,
        )
