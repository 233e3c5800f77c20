"""A cluster that runs jobs: S3 of moto, and nodes that write real records."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.cluster.test_nodes_command import VERIFIED
from tests.cli.running import GOOD
from tests.core.job_bucket import BUCKET, REGION, NodesOfAJob, job_bucket
from trainium_cli.jobs import cp_command
from trainium_core.engines.ec2 import aws_jobs
from trainium_core.jobs import follow
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.engine import NoStackError
from trainium_core.nodes.report import DeployedNodes
from trainium_core.plan import Plan
from trainium_runtime.aws_service import Clients

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

        class Jobs(aws_jobs.ClusterJobs):
            def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
                super().__init__(plan, stack, clients)
                self.store = JobStore(REGION, self._find)

            def _find(self) -> str:
                if cluster.nodes is None:
                    raise NoStackError(self.stack, REGION)
                return BUCKET

        def pause(_seconds: float) -> None:
            cluster.while_paused()

        def no_prices(_region: str, **_: object) -> None:
            return None

        for name, replacement in {"AwsPrices": no_prices, "AwsNodes": Nodes, "ClusterJobs": Jobs}.items():
            monkeypatch.setattr(aws_jobs, name, replacement)
        # Whether this module was imported before depends on the tests that ran before.
        monkeypatch.setattr(cp_command, "ClusterJobs", Jobs)
        monkeypatch.setattr(follow.time, "sleep", pause)
        Path("train.py").write_text("print('hello')\n")
        yield cluster
