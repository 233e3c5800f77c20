"""A cluster that jobs run on: S3 of moto, with nodes that write what nodes write."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.cluster.test_nodes_command import PROVEN
from tests.cli.running import GOOD
from tests.core.job_bucket import NodesOfAJob, job_bucket
from trainium_cli.jobs import job_cluster, job_submission
from trainium_core.jobs import follow
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.nodes.report import DeployedNodes

TWO = (*GOOD, "-c", "trn:nodes=2")


@dataclass
class Cluster:
    """A deployed cluster. nodes: None when there is no stack. while_paused: what the nodes do between two looks."""

    jobs: AwsJobs
    writes: NodesOfAJob
    nodes: DeployedNodes | None = PROVEN
    while_paused: Callable[[], None] = lambda: None


@contextmanager
def cluster_with_jobs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Cluster]:
    """The commands find it, in a folder that holds train.py."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    with job_bucket() as (jobs, writes):
        made = Cluster(jobs, writes)

        class Nodes:
            def __init__(self, _region: str, **_: object) -> None: ...

            def nodes(self, _stack: str) -> DeployedNodes | None:
                return made.nodes

        def jobs_of(_plan: object, _stack: str, **_: object) -> AwsJobs | None:
            return made.jobs if made.nodes else None

        def pause(_seconds: float) -> None:
            made.while_paused()

        def no_prices(_region: str, **_: object) -> None:
            return None

        monkeypatch.setattr(job_submission, "AwsPrices", no_prices)
        monkeypatch.setattr("trainium_cli.jobs.jobs_command.AwsPrices", no_prices)
        monkeypatch.setattr(job_submission, "AwsNodes", Nodes)
        for module in (job_submission, job_cluster):
            monkeypatch.setattr(module, "cluster_jobs", jobs_of)
        monkeypatch.setattr("trainium_cli.jobs.run_command.cluster_jobs", jobs_of)
        monkeypatch.setattr(follow.time, "sleep", pause)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "160")
        Path("train.py").write_text("print('hello')\n")
        yield made
