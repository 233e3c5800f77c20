"""A verified node in a folder for tests of its watch, with its own clock and services on loopback; one with a job."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.retry_cases import RETRY_SETTINGS
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import BUCKET, JOB, NodeFiles, StoredJob
from trainium_userdata.node.trn_node import files, notices, record
from trainium_userdata.node.trn_node.imds import Imds
from trainium_userdata.node.trn_node.job_unit import LAUNCH
from trainium_userdata.node.trn_node.notices import NOTICE
from trainium_userdata.node.trn_node.objects import Objects
from trainium_userdata.node.trn_node.watch import TICK, Watch
from trainium_wire.node_record import NodeRecord

NOON = notices.timestamp("2026-11-21T12:00:00Z")
BOOT = "e2f1ad3c-74a0-4150-b3a5-96839dc4d8f3"
PLAN = {
    "rendezvous_port": 41000,
    "suppress_checks": [],
    "internode_ssh": False,
}
LATER = "i-1aaaaaaaaaaaaaaa1"
EARLIER = "i-00aaaaaaaaaaaaaa1"
FIRST = [(INSTANCE_ID, "127.0.0.2"), (LATER, "127.0.0.3")]
SECOND = [(EARLIER, "127.0.0.3"), (INSTANCE_ID, "127.0.0.2")]
SPEC = {
    "format": 1,
    "id": JOB,
    "nodes": 2,
    "processes_per_node": 1,
    "command": "true",
    **RETRY_SETTINGS,
    "time_limit_seconds": None,
    "resume_from": None,
}


class WatchNode(NodeFiles):
    """A node that is verified in this boot, with two healthy devices and an empty kernel log; `pass_time` runs the
    watch.
    """

    def __init__(self, root: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, root / "programs")
        self.aws = aws
        self.now = NOON
        monkeypatch.setenv("ROOT", str(root))
        monkeypatch.setenv("TRN_HTTP_RETRIES", "0")
        for name in ("du", "rm"):
            self.programs.mkdir(exist_ok=True)
            (self.programs / name).symlink_to(f"/usr/bin/{name}")
        monkeypatch.setenv("PATH", str(self.programs))
        for name, value in aws.loopback_environment.items():
            monkeypatch.setenv(name, value)
        self.plan(**PLAN)
        files.write(files.LOCATIONS, f"TRN_REGION={aws.region}\nTRN_REPORT_URL=s3://{BUCKET}/nodes\n")
        files.write("proc/sys/kernel/random/boot_id", BOOT + "\n")
        files.write("dev/kmsg", "")
        for device in (0, 1):
            self.counter(device, "mem_ecc_uncorrected", 0)
            self.counter(device, "sram_ecc_uncorrected", 0)
            self.counter(device, "mem_ecc_repairable_uncorrected", 0)
        self.verify()
        self.start()

    def start(self) -> None:
        """Start the watch, also again after it has ended."""
        imds = Imds(retries=0)
        self.watch = Watch(imds, Objects(imds, retries=0), lambda: self.now)

    def plan(self, **values: Any) -> None:
        files.write(files.PLAN, json.dumps({**PLAN, **values}))

    def verify(self, state: str = "verified", reason: str = "") -> None:
        """Write the results of a verification."""
        checks = [{"name": "neuron-devices", "expected": "16", "found": "16", "ok": state == "verified"}]
        content = {"instance_id": INSTANCE_ID, "state": state, "reason": reason, "checks": checks}
        record.write({**content, "address": "10.42.0.11", "membership": "", "time": "2026-11-21T11:59:00Z"})

    def reboot(self) -> None:
        """Reboot and pass the verification. On this node /run survives."""
        files.write("proc/sys/kernel/random/boot_id", "2b5e4e8c-11f2-4a5d-9c06-0d4c9c1ad7a1\n")
        files.write("dev/kmsg", "")
        files.path(NOTICE).unlink(missing_ok=True)
        self.verify()
        self.start()

    def pass_time(self, seconds: float = 2 * TICK) -> None:
        end = self.now + seconds
        while self.now < end:
            self.watch.step()
            self.now += TICK

    def counter(self, device: int, name: str, count: int, folder: str = "stats/hardware") -> None:
        files.write(f"sys/devices/virtual/neuron_device/neuron{device}/{folder}/{name}", f"{count}\n")

    def kernel_says(self, message: str, sequence: int) -> None:
        with (self.root / "dev/kmsg").open("a") as log:
            log.write(f"4,{sequence},1234567,-;{message}\n")

    def announce(self, path: str, text: str) -> None:
        self.aws.notices[path] = text

    def membership(self, nodes: Sequence[tuple[str, str]], version: str = "v1", notices: Sequence[Any] = ()) -> None:
        listed = [{"instance_id": name, "address": address} for name, address in nodes]
        self.aws.records[f"{BUCKET}/cluster.json"] = json.dumps(
            {"version": version, "nodes": listed, "notices": list(notices)}
        )

    @property
    def record(self) -> NodeRecord:
        return NodeRecord.from_json(files.read(files.RECORD))

    @property
    def sent(self) -> NodeRecord | None:
        text = self.aws.records.get(f"{BUCKET}/nodes/{INSTANCE_ID}.json")
        return NodeRecord.from_json(text) if text else None

    @property
    def notice(self) -> dict[str, Any] | None:
        text = files.read(NOTICE)
        return json.loads(text) if text else None


class JobNode(WatchNode, StoredJob):
    """One of two nodes in a cluster with a job. The stand-in for systemd records started units."""

    def __init__(self, root: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, aws, monkeypatch)
        files.write("etc/passwd", "trn-job:x:60800:60800::/nonexistent:/usr/sbin/nologin\n")
        self.program("systemd-run", f'echo "$*" >>{root}/started; echo ActiveState=active >{root}/state')
        self.program("systemctl", f'echo "$(<{root}/state)"')
        self.unit("inactive")

    def unit(self, state: str, process: int = 0) -> None:
        (self.root / "state").write_text(f"MainPID={process}\nActiveState={state}\n")

    def process(self, number: int, *, uids: str, state: str = "S (sleeping)", threads: int = 1) -> None:
        """Let a process run on the node."""
        status = f"Name:\tx\nState:\t{state}\nUid:\t{uids}\nThreads:\t{threads}\n"
        files.write(f"proc/{number}/status", status)

    @property
    def starts(self) -> list[str]:
        """The arguments of each call of systemd-run."""
        return files.read("started").splitlines()

    @property
    def launch(self) -> dict[str, Any]:
        return json.loads(files.read(LAUNCH))

    def submit(self, **changes: Any) -> None:
        self.aws.records[f"{BUCKET}/job.json"] = json.dumps({**SPEC, **changes})

    def started_by_another(self, nodes: list[tuple[str, str]], attempt: int = 1) -> None:
        listed = [{"instance_id": name, "address": address} for name, address in nodes]
        start = {"attempt": attempt, "at": notices.iso(NOON), "membership": "v1", "nodes": listed}
        last = {"resume_from": None, "resume_job": None, "seconds_left": None}
        self.put(f"attempts/{attempt}/start.json", {**start, **last})

    def end_attempt(
        self, result: str, attempt: int = 1, exit_code: int | None = None, joined: tuple[int, ...] = (0, 1)
    ) -> None:
        """End the attempt, in which these ranks have begun their part, and its processes on this node."""
        for rank in joined:
            self.put(f"attempts/{attempt}/nodes/{rank}.json", {})
        end = {"result": result, "reason": "so", "traceback": None, "node": 1, "rank": None, "exit_code": exit_code}
        self.put(f"attempts/{attempt}/end.json", end)
        self.unit("inactive")

    def others_are_ready(self, attempt: int = 2, version: str = "v1", but: str = "") -> None:
        """Let the other nodes of the membership say that they are ready for an attempt."""
        for node in json.loads(self.aws.records[f"{BUCKET}/cluster.json"])["nodes"]:
            if node["instance_id"] not in (INSTANCE_ID, but):
                self.put(f"attempts/{attempt}/ready/{version}/{node['instance_id']}.json", {})

    def settle(self) -> None:
        """Let the watch read and test a membership, and find and begin a job."""
        self.pass_time(30)
