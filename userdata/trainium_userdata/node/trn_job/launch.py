"""The launch file: the input of a node's part of a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from trainium_wire.job import Job
from trainium_wire.job_keys import AttemptKeys, JobKeys, job_keys


class Timing(NamedTuple):
    """Seconds. `poll`: between reads of objects from other nodes. `others`: on node 0 after its command has succeeded,
    between reads of whether theirs have. `grace`: from SIGTERM to SIGKILL.

    `peers`, `peers_again`: between tests of the neighbours, and after a failed one. `log`: between parts of the log of
    node 0; `log_others` of the other nodes; `report` between progress records. `give_way`: how long a failure that
    another node may have caused waits for that node's report. `stacks`: time for hanging processes to print their
    stacks. `results`: how long checkpoints and outputs wait for S3 at the end; `refused`: if S3 refuses them. `parts`:
    how long node 0 then waits for the other nodes' parts of checkpoints.
    """

    poll: float = 2.5
    others: float = 0.5
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


class Launch(NamedTuple):
    """url: S3 URL of the folder of all jobs. folder: an empty folder of the job's user.

    spec: the submitted job. rank: this node's among `nodes`, which have `instance_id` and `address`. resume_from: a
    checkpoint of `resume_job`, or None. seconds_left: of the job's time limit. notice_file: the file with the notice of
    this node's end, if any; it counts within notice_seconds before the end. compile_cache: its `url`, its `folder` on
    this node, `stack`, `venv`, `instance_type`, `lnc` and `read_only`; None without one. venv: the environment of the
    job's software stack, or the node's own; None without one.
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
    compile_cache: dict[str, Any] | None = None
    venv: str | None = None
    timing: Timing = Timing()

    @property
    def job(self) -> str:
        return self.spec.id

    @property
    def name(self) -> str:
        """This node, for messages."""
        return f"node {self.rank} ({self.nodes[self.rank]['instance_id']})"

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
        """S3 URLs by name. Uploads are given by their path among the job's files."""
        folder = f"{self.url.rpartition('/')[0]}/{self.job_keys.inputs}"
        return {
            name: url if "://" in url else f"{folder}/{url.partition('/')[2]}" for name, url in self.spec.inputs.items()
        }

    @property
    def job_keys(self) -> JobKeys:
        """Of the job, below `url`."""
        return job_keys(self.job, "")

    @property
    def keys(self) -> AttemptKeys:
        """Of this attempt, below `url`."""
        return self.job_keys.attempt(self.attempt)


def read(path: str) -> Launch:
    """Raises OSError, ValueError, LookupError or TypeError if it is not a launch file."""
    raw: dict[str, Any] = json.loads(Path(path).read_text())
    timing, spec = Timing(**raw.pop("timing", {})), Job.from_record(raw.pop("spec"))
    return Launch(**raw, spec=spec, timing=timing)
