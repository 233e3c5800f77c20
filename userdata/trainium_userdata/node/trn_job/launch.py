"""The launch file: the input of a node's part of an attempt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, cast

from trainium_wire.job import Job
from trainium_wire.job_keys import AttemptKeys, JobKeys, job_keys


class Timing(NamedTuple):
    """Times in seconds.

    Attributes:
        poll: Between reads of the end of the attempt, the request to stop, and notices.
        others: After the command has succeeded: on node 0, between reads of the other nodes' records; on the others,
            between reads of the end of the attempt.
        soon: How long after that the other nodes read the end this often, and not only every `poll` seconds.
        grace: From SIGTERM to SIGKILL.
        peers: Between tests of the neighbours; also replaces `parts` after the loss of a node.
        peers_again: Between a failed test of the neighbours and the next test.
        log: Between parts of the log of node 0.
        log_others: Between parts of the logs of other nodes.
        report: Between progress records.
        give_way: How long a failure that another node may have caused waits for that node's report.
        stacks: Time for hanging processes to print their stacks.
        results: How long a node tries to store checkpoints, outputs and the log at the end.
        refused: The same if S3 refuses all remaining files, or they cannot be read.
        parts: How long node 0 then waits for the other nodes' parts of checkpoints.
        terminated: How long after SIGTERM a node stores results and node 0 waits for parts: systemd and Slurm
            (KillWait) kill processes after 30 seconds.
    """

    poll: float = 2.5
    others: float = 0.5
    soon: float = 15
    grace: float = 10
    peers: float = 15
    peers_again: float = 3
    log: float = 3
    log_others: float = 15
    report: float = 15
    give_way: float = 20
    stacks: float = 3
    results: float = 900
    refused: float = 60
    parts: float = 60
    terminated: float = 25


class Launch(NamedTuple):
    """A node's part of an attempt.

    Attributes:
        url: S3 URL of the folder of all jobs.
        spec: The submitted job.
        attempt: Number of the attempt.
        rank: Rank of this node.
        nodes: The `instance_id` and `address` of each node, in the order of ranks.
        folder: An empty folder of the job's user.
        resume_from: Name of the checkpoint to continue from, if any.
        resume_job: Job that saved the checkpoint.
        seconds_left: Remaining seconds of the job's time limit; None without one.
        notice_file: File with the notice that this node will be interrupted, if there is one; empty: no notices.
        notice_seconds: How many seconds before the interruption the notice applies.
        metrics_file: File with the metrics of the node in the attempt, if there is one.
        compile_cache: `url`, `folder` on this node, `stack`, `venv`, `instance_type`, `lnc` and `read_only`; None
            without a compile cache.
        venv: Virtual environment of the job's stack, or of the node; None without one.
        in_container: Whether the node is a container: the command inherits its environment, without a login shell.
        timing: Times in seconds.
    """

    url: str
    spec: Job
    attempt: int
    rank: int
    nodes: list[dict[str, str]]
    folder: str
    resume_from: str | None = None
    resume_job: str | None = None
    seconds_left: float | None = None
    notice_file: str = ""
    notice_seconds: float = 900
    metrics_file: str = ""
    compile_cache: dict[str, Any] | None = None
    venv: str | None = None
    in_container: bool = False
    timing: Timing = Timing()

    @property
    def job(self) -> str:
        return self.spec.id

    @property
    def name(self) -> str:
        """This node, for messages."""
        return f"node {self.rank} ({self.nodes[self.rank]['instance_id']})"

    @property
    def utilization(self) -> dict[str, Any] | None:
        """The metrics of this node in this attempt; None if there are none."""
        try:
            raw: Any = json.loads(Path(self.metrics_file).read_text())
        except (OSError, ValueError):
            return None
        record = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
        return record if (record.get("job"), record.get("attempt")) == (self.job, self.attempt) else None

    @property
    def place(self) -> Path:
        return Path(self.folder)

    @property
    def world_size(self) -> int:
        return len(self.nodes) * self.spec.processes_per_node

    @property
    def checkpoints_url(self) -> str:
        """S3 URL of the folder for the checkpoints of all jobs: one that outlives the cluster, or `url`."""
        return self.spec.checkpoints_folder(self.url)

    @property
    def inputs(self) -> dict[str, str]:
        """S3 URLs of the inputs by name, including those of uploads."""
        folder = f"{self.url.rpartition('/')[0]}/{self.job_keys.inputs}"
        return {
            name: url if "://" in url else f"{folder}/{url.partition('/')[2]}" for name, url in self.spec.inputs.items()
        }

    @property
    def job_keys(self) -> JobKeys:
        """Keys of the job, below `url` except `inputs`."""
        return job_keys(self.job, "")

    @property
    def keys(self) -> AttemptKeys:
        """Keys of this attempt, below `url`."""
        return self.job_keys.attempt(self.attempt)


def read(path: str) -> Launch:
    """Read a launch file. Raises OSError, ValueError, LookupError or TypeError if it is invalid."""
    raw: Any = json.loads(Path(path).read_text())
    if not isinstance(raw, dict):
        raise TypeError("it is not a JSON object")
    raw = cast("dict[str, Any]", raw)
    timing, spec = Timing(**raw.pop("timing", {})), Job.from_record(raw.pop("spec"))
    return Launch(**raw, spec=spec, timing=timing)
