"""A node in a cluster of two with a job, for tests of the watch. The stand-in for systemd records started units."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.retry_cases import RETRY_SETTINGS
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.watch_node import BUCKET, NOON, WatchNode
from trainium_userdata.node.trn_node import files, notices
from trainium_userdata.node.trn_node.job_unit import LAUNCH

JOB = "train-20261122-190501"
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


class JobNode(WatchNode):
    """One of two nodes in a cluster with a job."""

    def __init__(self, root: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, aws, monkeypatch)
        files.write("etc/passwd", "trn-job:x:60800:60800::/nonexistent:/usr/sbin/nologin\n")
        self.program("systemd-run", f'echo "$*" >>{root}/started; echo ActiveState=active >{root}/state')
        self.program("systemctl", f'echo "$(<{root}/state)"')
        self.unit("inactive")

    def program(self, name: str, body: str) -> None:
        file = self.root / "programs" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)

    def unit(self, state: str, process: int = 0) -> None:
        (self.root / "state").write_text(f"MainPID={process}\nActiveState={state}\n")

    @property
    def starts(self) -> list[str]:
        """The arguments of each call of systemd-run."""
        return files.read("started").splitlines()

    @property
    def launch(self) -> dict[str, Any]:
        return json.loads(files.read(LAUNCH))

    def submit(self, **changes: Any) -> None:
        self.aws.records[f"{BUCKET}/job.json"] = json.dumps({**SPEC, **changes})

    def put(self, key: str, content: Any) -> None:
        self.aws.records[f"{BUCKET}/jobs/{JOB}/{key}"] = json.dumps(content)

    def object(self, key: str) -> dict[str, Any]:
        return json.loads(self.aws.records.get(f"{BUCKET}/jobs/{JOB}/{key}", "{}"))

    def started_by_another(self, nodes: list[tuple[str, str]], attempt: int = 1) -> None:
        listed = [{"instance_id": name, "address": address} for name, address in nodes]
        start = {"attempt": attempt, "at": notices.iso(NOON), "membership": "v1", "nodes": listed}
        last = {"resume_from": None, "resume_job": None, "seconds_left": None}
        self.put(f"attempts/{attempt}/start.json", {**start, **last})

    def end_attempt(self, result: str, attempt: int = 1, exit_code: int | None = None) -> None:
        """End the attempt and its processes on this node."""
        end = {"result": result, "reason": "so", "traceback": None, "node": 1, "rank": None, "exit_code": exit_code}
        self.put(f"attempts/{attempt}/end.json", end)
        self.unit("inactive")

    def settle(self) -> None:
        """Let the watch read and test a membership, and find and begin a job."""
        self.pass_time(30)
