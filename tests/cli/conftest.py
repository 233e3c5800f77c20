"""Fixtures for all tests of the command line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.jobs.cluster_with_jobs import Cluster, cluster_with_jobs
from trainium_cli import cluster_choice
from trainium_core.clusters.cluster import ClusterNode, ClusterStack, ClusterStacks
from trainium_core.nodes.fleet import DeployedFleet
from trainium_runtime.errors import UnavailableError


@dataclass
class FakeLocating:
    """The clusters of every region.

    Attributes:
        stacks: Stacks with the tag of a cluster.
        not_read: Why stacks could not be read.
        fleets: Fleets by cluster.
        nodes: Instances with the tag of a cluster.
        unavailable: Why requests fail.
    """

    stacks: Sequence[ClusterStack] = ()
    not_read: Sequence[str] = ()
    fleets: dict[str, DeployedFleet] = field(default_factory=dict[str, DeployedFleet])
    nodes: Sequence[ClusterNode] = ()
    unavailable: str = ""

    def cluster_stacks(self) -> ClusterStacks:
        if self.unavailable:
            raise UnavailableError(self.unavailable)
        return ClusterStacks(stacks=self.stacks, not_read=self.not_read)

    def fleet(self, stack: ClusterStack) -> DeployedFleet | None:
        return self.fleets.get(stack.cluster)

    def cluster_nodes(self) -> Sequence[ClusterNode]:
        return self.nodes


@pytest.fixture(autouse=True)
def _in_an_empty_folder_on_a_wide_screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(autouse=True)
def clusters(monkeypatch: pytest.MonkeyPatch) -> FakeLocating:
    """The clusters that commands in this process find by tag; none unless a test adds some."""
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
