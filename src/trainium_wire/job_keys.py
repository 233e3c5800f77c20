"""Keys of what belongs to one job of `trn run`."""

from __future__ import annotations

from typing import NamedTuple

from trainium_wire.keys import JOBS_PREFIX

SOURCE_FILE = "source.tar.gz"
"""The packed source of a job, in its folder."""

INPUTS = "inputs"
"""Folder of what is uploaded for a job, below the job's own."""


JOB_FOLDERS_OF_NODES = ("attempts", "checkpoints", "outputs")
"""Folders of a job that its nodes write. Besides they write its end."""


class AttemptKeys(NamedTuple):
    """Keys of one attempt of a job, below its folder."""

    folder: str

    @property
    def start(self) -> str:
        """Who takes part, and from which checkpoint."""
        return f"{self.folder}/start.json"

    @property
    def end(self) -> str:
        """How it ended. Only the first node that writes it does."""
        return f"{self.folder}/end.json"

    @property
    def notice(self) -> str:
        """That a node of the attempt ends soon."""
        return f"{self.folder}/notice.json"

    @property
    def nodes(self) -> str:
        """What the keys of all nodes' progress begin with."""
        return f"{self.folder}/nodes/"

    def node(self, rank: int) -> str:
        """The progress of a node."""
        return f"{self.nodes}{rank}.json"

    def logs(self, rank: int) -> str:
        """What the keys of the parts of a node's log begin with, which sort by their numbers."""
        return f"{self.folder}/logs/node-{rank}/"

    def log(self, rank: int, part: int) -> str:
        """A part of a node's log."""
        return f"{self.logs(rank)}{part:06d}.log"


class JobKeys(NamedTuple):
    """Keys of one job, below its folder."""

    folder: str

    @property
    def job(self) -> str:
        """The job as it was submitted."""
        return f"{self.folder}/job.json"

    @property
    def source(self) -> str:
        return f"{self.folder}/{SOURCE_FILE}"

    @property
    def inputs(self) -> str:
        """The folder of what was uploaded for it."""
        return f"{self.folder}/{INPUTS}"

    @property
    def stop(self) -> str:
        """That `trn stop` asks for its end."""
        return f"{self.folder}/stop.json"

    @property
    def end(self) -> str:
        """How it ended."""
        return f"{self.folder}/end.json"

    @property
    def checkpoints(self) -> str:
        """What the keys of its checkpoints begin with."""
        return f"{self.folder}/checkpoints/"

    def checkpoint(self, name: str) -> str:
        """The manifest of a checkpoint, which is written last: one without is not complete."""
        return f"{self.checkpoints}{name}.json"

    def checkpoint_part(self, name: str, part: str) -> str:
        """What a node has stored of a checkpoint: its files, with their sizes and digests."""
        return f"{self.checkpoints}{name}/{part}.json"

    def checkpoint_file(self, name: str, part: str, path: str) -> str:
        """path: below the folder of checkpoints of the node."""
        return f"{self.checkpoints}{name}/{part}/{path}"

    def output(self, path: str) -> str:
        return f"{self.folder}/outputs/{path}"

    def attempt(self, number: int) -> AttemptKeys:
        """Attempts are numbered from 1."""
        return AttemptKeys(f"{self.folder}/attempts/{number}")


def job_keys(job_id: str, folder: str = JOBS_PREFIX) -> JobKeys:
    """The keys of a job. folder: of all jobs; empty for keys that are relative to it."""
    return JobKeys(f"{folder}/{job_id}" if folder else job_id)
