"""Keys of the objects of one job of `trn run`."""

from __future__ import annotations

from typing import NamedTuple

from trainium_wire.keys import JOBS_PREFIX

INPUTS_PREFIX = "inputs"
"""Folder of the uploaded inputs of jobs. Not below JOBS_PREFIX, because nodes may write `jobs/*/outputs/*`, and IAM's
`*` also matches slashes."""

SUBMITTED_PREFIX = "submitted"
"""Folder with an empty object for each job of `trn run`, named after its ID. Not below JOBS_PREFIX, where nodes can
write folders of jobs that do not exist."""

SOURCE_FILE = "source.tar.gz"
"""The packed source of a job, in its folder."""

INPUTS = "inputs"
"""Name of the folder with a job's uploads, in the paths of its files and in the URLs of its inputs."""

OUTPUTS = "outputs"
"""Name of the folder with the outputs of all nodes."""

INCOMPLETE_CHECKPOINTS = "incomplete-checkpoints"
"""Name of the folder with the stored parts of incomplete checkpoints, in the paths of a job's files."""

JOB_FOLDERS_OF_NODES = ("attempts", "checkpoints", OUTPUTS)
"""Folders of a job that its nodes write to. The nodes also write the end of the job."""


class AttemptKeys(NamedTuple):
    """Keys of one attempt of a job, below its folder."""

    folder: str

    @property
    def start(self) -> str:
        """The nodes of the attempt, and the checkpoint it continues from."""
        return f"{self.folder}/start.json"

    @property
    def end(self) -> str:
        """The end of the attempt, written once by the first node that detects it."""
        return f"{self.folder}/end.json"

    @property
    def notice(self) -> str:
        """The notice that a node of the attempt will be interrupted soon."""
        return f"{self.folder}/notice.json"

    def ready_nodes(self, membership: str) -> str:
        """Prefix of the keys by which the nodes of a membership say that they are ready for the attempt."""
        return f"{self.folder}/ready/{membership}/"

    def ready(self, membership: str, instance_id: str) -> str:
        return f"{self.ready_nodes(membership)}{instance_id}.json"

    @property
    def nodes(self) -> str:
        """Prefix of the keys of all nodes' progress."""
        return f"{self.folder}/nodes/"

    def node(self, rank: int) -> str:
        """The progress of a node."""
        return f"{self.nodes}{rank}.json"

    def logs(self, rank: int) -> str:
        """Prefix of the keys of the parts of a node's log, which sort by their numbers."""
        return f"{self.folder}/logs/node-{rank}/"

    def log(self, rank: int, part: int) -> str:
        """A part of a node's log."""
        return f"{self.logs(rank)}{part:06d}.log"


class JobKeys(NamedTuple):
    """Keys of one job, below its folder except `inputs` and `submitted`."""

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
        """The folder of the job's uploads in the bucket."""
        return f"{INPUTS_PREFIX}/{self.folder.rpartition('/')[2]}"

    @property
    def submitted(self) -> str:
        """The object in the bucket by which the job is listed. Nodes cannot write it."""
        return f"{SUBMITTED_PREFIX}/{self.folder.rpartition('/')[2]}"

    @property
    def stop(self) -> str:
        """The request of `trn stop` to end the job."""
        return f"{self.folder}/stop.json"

    @property
    def end(self) -> str:
        """The end of the job."""
        return f"{self.folder}/end.json"

    @property
    def notified(self) -> str:
        """The invocation of the controller that published the notice of the end."""
        return f"{self.folder}/notified"

    @property
    def checkpoints(self) -> str:
        """Prefix of the keys of the job's checkpoints."""
        return f"{self.folder}/checkpoints/"

    def checkpoint(self, name: str) -> str:
        """The manifest of a checkpoint. It is written last, so a checkpoint without a manifest is incomplete."""
        return f"{self.checkpoints}{name}.json"

    def checkpoint_part(self, name: str, part: str) -> str:
        """A node's part of a checkpoint: its files, with sizes and digests."""
        return f"{self.checkpoints}{name}/{part}.json"

    def checkpoint_file(self, name: str, part: str, path: str) -> str:
        """A file of a checkpoint, by its path below the node's checkpoint folder."""
        return f"{self.checkpoints}{name}/{part}/{path}"

    @property
    def incomplete_checkpoints(self) -> str:
        """The parts of the checkpoints that were incomplete at the end of the last attempt, by name."""
        return f"{self.folder}/attempts/{INCOMPLETE_CHECKPOINTS}.json"

    def output(self, rank: int, path: str) -> str:
        """An output of a node, by its path in the node's output folder."""
        return f"{self.folder}/{OUTPUTS}/{output_path(rank, path)}"

    @property
    def output_lists(self) -> str:
        """Prefix of the keys of all nodes' lists of outputs."""
        return f"{self.folder}/attempts/outputs/"

    def output_list(self, rank: int) -> str:
        """The outputs that a node has at present, and its symbolic links, which S3 cannot store."""
        return f"{self.output_lists}{rank}.json"

    def attempt(self, number: int) -> AttemptKeys:
        """Attempts are numbered from 1."""
        return AttemptKeys(f"{self.folder}/attempts/{number}")


def output_path(rank: int, path: str) -> str:
    """The path of an output in the outputs of all nodes."""
    return f"node-{rank}/{path}" if rank else path


def job_keys(job_id: str, folder: str = JOBS_PREFIX) -> JobKeys:
    """The keys of a job in the folder of all jobs, or relative keys for an empty folder."""
    return JobKeys(f"{folder}/{job_id}" if folder else job_id)
