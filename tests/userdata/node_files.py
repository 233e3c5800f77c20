"""What the simulated nodes of these tests share: files below a folder, stand-ins for programs, and a job in S3."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import trainium_wire
from tests.userdata.aws_stand_in import AwsStandIn
from trainium_userdata import node

BUCKET = "records"
JOB = "train-20261122-190501"
TIMEOUT_SECONDS = 180


class NodeFiles:
    """The files of a node, below `root`, and the stand-ins for its programs, in `programs`."""

    def __init__(self, root: Path, programs: Path) -> None:
        self.root, self.programs = root, programs
        programs.mkdir(parents=True)

    def write(self, path: str, text: str = "", *, mode: int = 0o644) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def program(self, name: str, body: str) -> None:
        """Put a stand-in for a program where the node finds it."""
        file = self.programs / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)


class StoredJob:
    """The objects of the job JOB in S3."""

    aws: AwsStandIn
    attempt = 1

    def content(self, key: str) -> dict[str, Any]:
        """An object of the job as JSON; empty if it does not exist."""
        return json.loads(self.aws.records.get(f"{BUCKET}/jobs/{JOB}/{key}", "{}"))

    def put(self, key: str, content: Mapping[str, Any]) -> None:
        self.aws.records[f"{BUCKET}/jobs/{JOB}/{key}"] = json.dumps(content)

    def log(self, rank: int = 0, *, attempt: int | None = None) -> str:
        """The log of a node, by default in the current attempt."""
        prefix = f"{BUCKET}/jobs/{JOB}/attempts/{attempt or self.attempt}/logs/node-{rank}/"
        return "".join(text for key, text in sorted(self.aws.records.items()) if key.startswith(prefix))

    def await_(self, condition: Callable[[], object]) -> None:
        """Raises AssertionError if the condition is not met in time."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"the condition was not met in time: {self.log()}"
            time.sleep(0.02)


def link_packages(folder: Path, *names: str) -> None:
    """Link packages of the node program, and the wire package, into a folder."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).symlink_to(Path(node.__file__).with_name(name))
    (folder / "trainium_wire").symlink_to(Path(trainium_wire.__file__).parent)
