"""A node in a folder for `trn-node`: its real program as a separate process, with stand-ins for other programs."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trainium_wire
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.neuron_ls import devices_of
from tests.userdata.node_files import NodeFiles
from tests.userdata.plans import LOCATIONS
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata import node
from trainium_userdata.expectations import node_expectations
from trainium_wire.node_record import CheckRecord, NodeRecord

PROGRAMS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "programs.json").read_text())
PACKAGES = f"{Path(node.__file__).parent}:{Path(trainium_wire.__file__).parents[1]}"
"""PYTHONPATH of the node program."""
RECORD_KEY = f"{LOCATIONS.report_url.removeprefix('s3://')}/{INSTANCE_ID}.json"
LOG_KEY = f"{LOCATIONS.report_url.removeprefix('s3://').rsplit('/', 1)[0]}/logs/{INSTANCE_ID}.log"
LARGE_REPORT = {"results": [{"size(B)": 268435456, "busbw(GB/s)": 91.24, "time:avg(us)": 5700.1}]}
DISK = "dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS{}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one command, and the record that is then in S3."""

    exit_code: int
    output: str
    record: NodeRecord | None

    def check(self, name: str) -> CheckRecord:
        assert self.record
        (found,) = [check for check in self.record.checks if check.name == name]
        return found


class VerifiedNode(NodeFiles):
    """A healthy node of the plan, with the framework of its image, until a test changes something."""

    def __init__(self, folder: Path, plan: Plan, aws: AwsStandIn) -> None:
        super().__init__(folder / "root", folder / "programs")
        self.plan, self.aws = plan, aws
        self.expectations = node_expectations(node_settings(plan))
        self.write("etc/trn/plan.json", json.dumps(self.expectations))
        self.write("etc/trn/places.env", f"TRN_REGION={LOCATIONS.region}\nTRN_REPORT_URL={LOCATIONS.report_url}\n")
        self.write("etc/passwd", "root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
        self.write("var/log/trn-node.log", "booted\n")
        self.write("dev/console")
        self.neuron(driver="2.29.1.0", runtime="2.33.2.0-1a2b3c4d5")
        self.neuron_ls([] if self.expectations["gpus"] else devices_of(plan))
        self.efa(self.expectations["efa_devices"])
        for device in range(self.expectations["neuron_devices"]):
            self.counter(device, "stats/hardware/mem_ecc_uncorrected", 0)
            self.counter(device, "neuron_core0/stats/status/hw_hbm_ue_error/total", 0)
        self.write("sys/class/neuron_device/ultraserver_mode", "1,2,3,4\n")
        self.collectives()
        self.limits("unlimited", "65536")
        self.program("timedatectl", "echo yes")
        self.program(
            "runuser",
            f'[ "$1 $2 $3 $4" = "--preserve-environment -u trn-job --" ] || exit 64; shift; '
            f'echo "$@" >>{self.root}/runuser.calls; shift 3; exec "$@"',
        )
        ports = self.expectations["reserved_ports"]
        self.write("proc/sys/net/ipv4/ip_local_reserved_ports", f"2703,{min(ports)}-{max(ports)}\n")
        for number in range(self.expectations["nvme_disks"]):
            self.disk(number)
        self.scratch(self.expectations["nvme_disks"] * self.expectations["nvme_disk_gb"])
        if self.expectations["gpus"]:
            self.gpus()
        else:
            self.framework(self.expectations["framework"] or "pytorch", "2_9")

    def expect(self, **changes: Any) -> None:
        self.expectations.update(changes)
        self.write("etc/trn/plan.json", json.dumps(self.expectations))

    def neuron(self, *, driver: str, runtime: str, installed: str | None = None) -> None:
        self.write("sys/module/neuron/version", f"{driver}\n")
        self.program("modinfo", f'[ "$*" = "-F version neuron" ] && echo {installed or driver}')
        self.program("dpkg-query", f"echo -n {runtime}")

    def neuron_ls(self, devices: list[dict[str, Any]], *, failures: int = 0) -> None:
        """Let neuron-ls list these devices, after this number of failures. It supports only the flag -j."""
        self.write("neuron-ls.json", json.dumps(devices))
        self.write("neuron-ls.failures", "fails\n" * failures)
        self.program(
            "neuron-ls",
            f"""[ "$*" = -j ] || {{ echo "unknown flag $*" >&2; exit 64; }}
cd {self.root}; if [ -s neuron-ls.failures ]; then sed -i 1d neuron-ls.failures
echo 'FATA[0000] Failed to discover neuron devices' >&2; exit 1; fi; cat neuron-ls.json""",
        )

    def gpus(self, **fields: dict[int, str]) -> None:
        """Install the driver, nvidia-smi, DCGM, nccl-tests and PyTorch of a GPU image.

        Args:
            fields: Values of nvidia-smi that are not normal, by field and GPU.
        """
        normal = {
            "memory.total": str(self.expectations["device_memory_gib"] * 1024 - 361),
            "mig.mode.current": "Disabled",
            "persistence_mode": "Enabled",
            "ecc.errors.uncorrected.volatile.total": "0",
        }
        rows = [
            ", ".join([str(number), *(fields.get(key, {}).get(number, value) for key, value in normal.items())])
            for number in range(self.expectations["gpus"])
        ]
        self.write("sys/module/nvidia/version", "580.126.09\n")
        self.write("nvidia-smi.csv", "\n".join(rows) + "\n")
        self.write("compute-apps.csv")
        self.program(
            "nvidia-smi",
            f"""[ "$2" = --format=csv,noheader,nounits ] || exit 64
case $1 in --query-gpu=index,memory.total,*) cat {self.root}/nvidia-smi.csv ;;
--query-compute-apps=process_name,pid) cat {self.root}/compute-apps.csv ;; *) exit 64 ;; esac""",
        )
        self.dcgm([("Deployment", "Pass", ""), ("software", "Pass", "")])
        self.nccl_tests(wrong=0)
        answers = "".join(f"echo '{mark} \"\"'\n" for mark in ("TRN-CORE", "TRN-MEMORY"))
        python = f"#!/bin/sh\necho $CUDA_VISIBLE_DEVICES >>{self.root}/visible.gpus\n{answers}"
        self.write("opt/pytorch/bin/python", python, mode=0o755)

    def dcgm(self, tests: list[tuple[str, str, str]], *, exit_code: int = 0) -> None:
        """Let `dcgmi diag` print these tests: name, status and warning."""
        results = [
            {"name": name, "results": [{"gpu_ids": "0", "status": status, **({"warnings": [why]} if why else {})}]}
            for name, status, why in tests
        ]
        printed = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": results}]}}
        self.write("dcgm.json", f"WARNING: a line before it\n{json.dumps(printed)}")
        self.program("dcgmi", f"[ \"$*\" = 'diag -r 1 -j' ] || exit 64; cat {self.root}/dcgm.json; exit {exit_code}")

    def nccl_tests(self, *, wrong: int, exit_code: int = 0) -> None:
        path = "usr/local/cuda-13.0/efa/test-cuda-13.0/all_reduce_perf"
        gpus = self.expectations["gpus"]
        self.write(
            path,
            f"""#!/bin/sh
[ "$*" = "-b 268435456 -e 268435456 -g {gpus} -n 5 -w 1 -c 1" ] || exit 64
echo '# Out of bounds values : {wrong} OK'
echo '# Avg bus bandwidth    : 478.321'
exit {exit_code}
""",
            mode=0o755,
        )

    def counter(self, device: int, path: str, count: int) -> None:
        self.write(f"sys/devices/virtual/neuron_device/neuron{device}/{path}", f"{count}\n")

    def efa(self, devices: int, *, opened: int | None = None) -> None:
        """Let the kernel list this number of devices, and fi_info open this number of them; by default all."""
        for number in range(devices):
            (self.root / f"sys/class/infiniband/rdmap{number}s27").mkdir(parents=True, exist_ok=True)
        shown = PROGRAMS["fi_info"]["stdout"]
        blocks = [shown.replace("rdmap16s27", f"rdmap{n}s27") for n in range(devices if opened is None else opened)]
        self.program("fi_info", f"[ \"$*\" = '-p efa' ] && printf %s {shlex.quote(''.join(blocks))}")

    def collectives(
        self,
        report: Any = PROGRAMS["nccom_test"]["report"],
        *,
        then: str = ":",
        check: str = "random",
        large: str = ":",
    ) -> None:
        """Let nccom-test record its arguments, write the report, and run a command.

        Args:
            report: The report.
            then: The command.
            check: The values of -c, as an extended regular expression. Before release 2.28, -c has no value.
            large: Another command, for the all-reduce of 256 MiB only.
        """
        self.write("nccom.json", json.dumps(report))
        self.write("nccom-large.json", json.dumps(LARGE_REPORT))
        self.program(
            "nccom-test",
            f"""file=nccom.json
if [[ "$*" == *"-b 268435456 -e 268435456"* ]]; then file=nccom-large.json; {large}; else
echo "$@" >{self.root}/nccom-test.arguments; env >{self.root}/nccom-test.environment
[[ "$*" =~ -c\\ ((-)|({check})) ]] || {{ echo 'nccom-test: error: unrecognized arguments' >&2; exit 2; }}; fi
while [ $# -gt 1 ]; do [ "$1" = --report-to-json-file ] && cp {self.root}/$file "$2"; shift; done
{then}""",
        )

    def limits(self, memlock: str, nofile: str, *, of_services: tuple[str, str] = ("infinity", "65536")) -> None:
        parameters = "- ubuntu -c ulimit -S -l; ulimit -S -n"
        self.program("su", f"""[ "$*" != {shlex.quote(parameters)} ] || printf '%s\\n' Welcome {memlock} {nofile}""")
        memlock, nofile = of_services
        self.program(
            "systemctl",
            f"""[[ "$*" != *--property=DefaultLimitMEMLOCKSoft,DefaultLimitNOFILESoft* ]] ||
printf '%s\\n' DefaultLimitNOFILESoft={nofile} DefaultLimitMEMLOCKSoft={memlock}""",
        )

    def disk(self, number: int) -> None:
        """Add a local disk, with the two links and the partition that udev makes."""
        device = f"dev/nvme{number}n1"
        self.write(device)
        for link, target in ((DISK, device), (DISK + "_1", device), (DISK + "-part1", f"{device}p1")):
            path = self.root / link.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(self.root / target)

    def scratch(self, gigabytes: float, *, target: str = "/scratch") -> None:
        self.program("df", f"echo '   1B-blocks Mounted on'; echo '{int(gigabytes * 10**9)} {target}'")

    def framework(
        self, name: str, version: str, *, modules: dict[str, str] | None = None, core: int | None = None
    ) -> None:
        """Install an environment with a framework that computes correctly.

        Args:
            name: Name of the framework.
            version: Version of the framework.
            modules: Modules of the framework. Default: none; every core answers immediately.
            core: The only core that computes with the modules; the others answer immediately. Default: all compute.
        """
        folder = f"opt/aws_neuronx_venv_{name}_{version}"
        for path, text in (modules or {}).items():
            self.write(f"{folder}/modules/{path}", text)
        answers = "".join(f"echo '{mark} \"\"'\n" * self._answers(name) for mark in ("TRN-CORE", "TRN-MEMORY"))
        computes = f'PYTHONPATH={self.root}/{folder}/modules exec {sys.executable} -S "$@"\n' if modules else ""
        if modules and core is not None:
            computes = f'if [ "$NEURON_RT_VISIBLE_CORES" = {core} ]; then {computes}fi\n'
        # The shell that starts fastest: a node has one process for each of up to 64 cores.
        self.write(f"{folder}/bin/python", f"#!/bin/sh\n{computes}{answers}", mode=0o755)

    def _answers(self, framework: str) -> int:
        return self.expectations["neuron_cores"] if framework == "jax" else 1

    def run(self, *arguments: str, program: str = "trn_node", **settings: str) -> Outcome:
        run = subprocess.run(
            [sys.executable, "-S", "-m", program, *arguments],
            cwd=self.root,
            env={
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "PYTHONPATH": PACKAGES,
                "ROOT": str(self.root),
                "TRN_VERIFY_ATTEMPTS": "1",
                "TRN_VERIFY_PAUSE": "0",
                "TRN_HTTP_RETRIES": "1",
                "TRN_HTTP_PAUSE": "0",
                **self.aws.loopback_environment,
                **settings,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=180,
        )
        record = self.aws.records.get(RECORD_KEY)
        return Outcome(
            exit_code=run.returncode, output=run.stdout, record=NodeRecord.from_json(record) if record else None
        )
