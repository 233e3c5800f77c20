"""A bucket of node records in moto, and a writer of the objects that nodes store there for a job."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moto import mock_aws

from tests.core.aws_stubs import REGION, client, create_bucket
from trainium_core.jobs.aws_job_store import JobStore
from trainium_wire.job import Job

BUCKET = "trn-records"
NOON = "2026-11-22T12:00:00Z"
NODES = ("i-0aaaaaaaaaaaaaaaa", "i-0bbbbbbbbbbbbbbbb")
JOB = Job(
    id="train-20261122-120000",
    name="train",
    cluster="trn-pilot",
    submitted_at=NOON,
    nodes=2,
    processes_per_node=2,
    command="torchrun train.py",
    retries=1,
)


@dataclass(frozen=True)
class NodesOfAJob:
    """Writes the files of the nodes in the documented format, and reads the source of a job."""

    s3: Any
    job: Job = JOB

    def put(self, path: str, content: Any) -> None:
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.s3.put_object(Bucket=BUCKET, Key=f"jobs/{self.job.id}/{path}", Body=body)

    def submit(self) -> None:
        """Write what `trn run` writes for the job, without its source."""
        self.put("job.json", self.job.to_json())
        self.s3.put_object(Bucket=BUCKET, Key=f"submitted/{self.job.id}")

    def source(self, job: Job) -> bytes:
        return self.s3.get_object(Bucket=BUCKET, Key=f"jobs/{job.id}/source.tar.gz")["Body"].read()

    def start(self, attempt: int = 1, **more: Any) -> None:
        nodes = [{"instance_id": node, "address": f"10.0.0.{number}"} for number, node in enumerate(NODES)]
        self.put(f"attempts/{attempt}/start.json", {"attempt": attempt, "at": NOON, "nodes": nodes, **more})

    def node(self, number: int, state: str, attempt: int = 1, **more: Any) -> None:
        shown = {"instance_id": NODES[number], "state": state, "at": NOON, **more}
        self.put(f"attempts/{attempt}/nodes/{number}.json", shown)

    def log(self, chunk: int, text: str, *, node: int = 0, attempt: int = 1) -> None:
        self.put(f"attempts/{attempt}/logs/node-{node}/{chunk:06}.log", text)

    def end_attempt(self, result: str, attempt: int = 1, **more: Any) -> None:
        self.put(f"attempts/{attempt}/end.json", {"result": result, "at": NOON, **more})

    def end(self, result: str, **more: Any) -> None:
        self.put("end.json", {"result": result, "at": NOON, **more})


class FollowedStore(JobStore):
    """A store of jobs that a follower can read without an engine."""

    shortest_poll, log_delay = 0.0, 0.0


@contextmanager
def job_bucket() -> Generator[tuple[FollowedStore, NodesOfAJob]]:
    with mock_aws():
        create_bucket(BUCKET)
        yield FollowedStore(REGION, BUCKET), NodesOfAJob(client("s3"))
