"""Fixtures for all tests of the command line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.jobs.cluster_with_jobs import Cluster, cluster_with_jobs
from trainium_cli import cluster_choice
from trainium_core.clusters.cluster import ClusterNode, ClusterStack, ClusterStacks
from trainium_core.stacks.aws_records import Records
from trainium_runtime.errors import UnavailableError
from trainium_wire.stack_record import StackRecord


@dataclass
class FakeLocating:
    """The clusters of every region.

    Attributes:
        recorded: The records.
        stacks: Stacks with a record or the tag of a cluster.
        not_read: Why stacks could not be read.
        nodes: Instances with the tag of a cluster.
        unavailable: Why requests fail.
    """

    recorded: Sequence[StackRecord] = ()
    stacks: Sequence[ClusterStack] = ()
    not_read: Sequence[str] = ()
    nodes: Sequence[ClusterNode] = ()
    unavailable: str = ""

    def cluster_stacks(self) -> ClusterStacks:
        if self.unavailable:
            raise UnavailableError(self.unavailable)
        return ClusterStacks(stacks=self.stacks, not_read=self.not_read)

    def records(self) -> Records:
        if self.unavailable:
            raise UnavailableError(self.unavailable)
        return Records(readable=self.recorded)

    def cluster_nodes(self) -> Sequence[ClusterNode]:
        return self.nodes


@pytest.fixture(autouse=True)
def _in_an_empty_folder_on_a_wide_screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(autouse=True)
def clusters(monkeypatch: pytest.MonkeyPatch) -> FakeLocating:
    """The clusters that commands in this process find; none unless a test adds some."""
    fake = FakeLocating()

    def fake_of(_region: str, **_: object) -> FakeLocating:
        return fake

    monkeypatch.setattr(cluster_choice, "AwsClustersAccount", fake_of)
    return fake


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster of two nodes that jobs run on."""
    with cluster_with_jobs(monkeypatch) as deployed:
        yield deployed
