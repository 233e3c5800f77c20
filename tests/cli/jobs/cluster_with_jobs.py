"""A cluster that runs jobs: S3 of moto, and nodes that write real records."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.cluster.test_nodes_command import VERIFIED
from tests.cli.running import GOOD
from tests.core.job_bucket import BUCKET, REGION, NodesOfAJob, job_bucket
from trainium_core.engines.ec2 import aws_jobs
from trainium_core.jobs import aws_stored_jobs, follow
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.engine import NoStackError
from trainium_core.nodes.report import DeployedNodes

TWO = (*GOOD, "-c", "trn:nodes=2")


@dataclass
class Cluster:
    """A deployed cluster.

    Attributes:
        jobs: Its jobs.
        job_nodes: Writes the records of the nodes of a job.
        nodes: Its nodes; None if the stack does not exist.
        while_paused: Called between two polls of the command.
    """

    jobs: JobStore
    job_nodes: NodesOfAJob
    nodes: DeployedNodes | None = VERIFIED
    while_paused: Callable[[], None] = lambda: None


@contextmanager
def cluster_with_jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Let the commands find the cluster, in a folder that contains train.py."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    with job_bucket() as (jobs, job_nodes):
        cluster = Cluster(jobs, job_nodes)

        class Nodes:
            def __init__(self, _region: str, **_: object) -> None: ...

            def nodes(self, _stack: str) -> DeployedNodes | None:
                return cluster.nodes

        def store(_plan: object, stack: str, _clients: object) -> JobStore:
            def find() -> str:
                if cluster.nodes is None:
                    raise NoStackError(stack, REGION)
                return BUCKET

            return JobStore(REGION, find)

        def pause(_seconds: float) -> None:
            cluster.while_paused()

        def no_prices(_region: str, **_: object) -> None:
            return None

        for name, replacement in {"AwsPrices": no_prices, "AwsNodes": Nodes}.items():
            monkeypatch.setattr(aws_jobs, name, replacement)
        monkeypatch.setattr(aws_stored_jobs, "deployed_store", store)
        monkeypatch.setattr(follow.time, "sleep", pause)
        Path("train.py").write_text("print('hello')\n")
        yield cluster
