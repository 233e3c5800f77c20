"""Nodes that run a job: for each a process of trn_job, the job's wrapper, with its own address; and one S3."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.userdata.aws_stand_in import AwsStandIn, as_text
from tests.userdata.node_files import BUCKET, JOB, TIMEOUT_SECONDS, StoredJob, link_packages

QUICK = {
    "poll": 0.1,
    "grace": 2,
    "peers": 0.2,
    "peers_again": 0.1,
    "log": 0.1,
    "log_others": 0.1,
    "report": 0.1,
    "give_way": TIMEOUT_SECONDS,
    "stacks": TIMEOUT_SECONDS,
}
OF_THE_LAUNCH = ("timing", "notice_file", "metrics_file", "seconds_left", "compile_cache", "venv")
SPEC: dict[str, Any] = {
    "format": 1,
    "id": JOB,
    "name": "train",
    "processes_per_node": 1,
    "setup": None,
    "environment": {},
    "checkpoint_seconds": 1,
    "retries": 0,
    "hang_seconds": None,
    "time_limit_seconds": None,
}


class JobNodes(StoredJob):
    """`start` begins an attempt on all nodes, `wait` returns their exit codes.

    The wrapper is started as on a node: it has only the standard library and the files installed on nodes.
    """

    def __init__(self, folder: Path, aws: AwsStandIn) -> None:
        self.aws, self.folder = aws, folder
        self.environment: dict[str, str] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "etc/trn").mkdir(parents=True)
        (folder / "etc/trn/places.env").write_text(f"TRN_REGION={aws.region}\n")
        link_packages(folder / "opt/trn", "trn_node", "trn_job", "trn_cache")

    def source(self, files: Mapping[str, str]) -> None:
        """Pack these files as the job's source."""
        self.aws.records[f"{BUCKET}/jobs/{JOB}/source.tar.gz"] = source_archive(files)

    def start(self, script: str, *, nodes: int = 1, ranks: tuple[int, ...] | None = None, **changes: Any) -> None:
        """Run a Python script as the job.

        Args:
            script: The script.
            nodes: Number of nodes.
            ranks: Ranks of the nodes that start. Default: all.
            changes: Other values of the job or of the launch, and `files`: other files of the source.
        """
        self.source({"train.py": script, **changes.pop("files", {})})
        launch = {name: changes.pop(name) for name in list(changes) if name in OF_THE_LAUNCH}
        resume = {name: changes.pop(name) for name in list(changes) if name.startswith("resume_")}
        spec = {**SPEC, "nodes": nodes, "command": f"{sys.executable} train.py", **changes}
        for rank in range(nodes) if ranks is None else ranks:
            place = self.place(rank)
            place.mkdir(parents=True)
            shown = {
                "url": f"s3://{BUCKET}/jobs",
                "spec": spec,
                "attempt": self.attempt,
                "rank": rank,
                "nodes": [{"instance_id": f"i-{k}", "address": f"127.0.0.{k + 2}"} for k in range(nodes)],
                "folder": str(place),
                **launch,
                **resume,
                "timing": {**QUICK, **launch.get("timing", {})},
            }
            file = self.folder / f"launch-{self.attempt}-{rank}.json"
            file.write_text(json.dumps(shown))
            self.processes.append(self.wrapper(file))

    def place(self, rank: int) -> Path:
        return self.folder / f"work-{self.attempt}-{rank}"

    def wait(self) -> list[int]:
        return [process.wait(TIMEOUT_SECONDS) for process in self.processes]

    def next_attempt(self) -> None:
        self.attempt += 1
        self.processes = []

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait(TIMEOUT_SECONDS)

    @property
    def end(self) -> dict[str, Any]:
        return self.content(f"attempts/{self.attempt}/end.json")

    def record(self, rank: int = 0) -> dict[str, Any]:
        return self.content(f"attempts/{self.attempt}/nodes/{rank}.json")

    def wrapper(self, file: Path) -> subprocess.Popen[bytes]:
        environment = {
            **{name: os.environ[name] for name in ("USER", "LOGNAME") if name in os.environ},
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "ROOT": str(self.folder),
            "PYTHONPATH": str(self.folder / "opt/trn"),
            "TRN_HTTP_PAUSE": "0.05",
            **self.aws.loopback_environment,
            **self.environment,
        }
        with file.with_suffix(".out").open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-S", "-m", "trn_job", str(file)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )


def source_archive(files: Mapping[str, str]) -> str:
    """The packed source of a job, as the stand-in for S3 stores it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return as_text(packed.getvalue())
