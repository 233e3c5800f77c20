"""The lab, switched on once for each part of the run; a deployed cluster, and a Slurm cluster."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tools.lab.cluster_jobs import ClusterJobs, make_job_resources
from tools.lab.deployment import bootstrap, deploy, destroy
from tools.lab.hardware import hardware_of
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import Laboratory, laboratory
from tools.lab.node import Node
from tools.lab.paths import RUN, SHOWN
from tools.lab.plans import MAX_NODES, lab_plan
from tools.lab.pytorch import with_torchrun
from tools.lab.site import lose_a_device
from tools.lab.slurm.cluster import SlurmCluster


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    """The lab. The last line of `make lab` has the number of nodes and tests of this part of the run."""
    with laboratory() as on:
        yield on
        SHOWN.write_text(f"{RUN.name}: {on.delivered} nodes booted, {request.session.testscollected} tests\n")


@pytest.fixture(scope="session")
def hypervisor(lab: Laboratory) -> Iterator[Hypervisor]:
    run = bootstrap()
    assert run.code == 0, run.errors
    with Hypervisor(lab) as running:
        yield running


def prepare_two_faults(number: int, node: Node) -> None:
    """One node lacks a device, and another one has no EFA traffic; all have PyTorch."""
    with_torchrun(number, node)
    if number == 0:
        lose_a_device(node)
    if number == 1:
        node.fit(replace(hardware_of(lab_plan()), efa_traffic=False))


@pytest.fixture(scope="session")
def cluster(lab: Laboratory, hypervisor: Hypervisor) -> Iterator[ClusterJobs]:
    """Healthy nodes with PyTorch, deployed once. The deployment has replaced two faulty ones."""
    hypervisor.prepare(prepare_two_faults)
    # The tests replace more nodes than the default allows.
    settings = {"nodes": str(MAX_NODES), "node_replacements": "10", "internode_ssh": "on", **make_job_resources(lab)}
    run = deploy(**settings)
    assert run.code == 0, run.errors
    yield ClusterJobs(lab, hypervisor, settings)
    destroy()


def prepare_one_fault(number: int, node: Node) -> None:
    """All nodes have PyTorch, and one lacks a device."""
    with_torchrun(number, node)
    if number == 0:
        lose_a_device(node)


@pytest.fixture(scope="session")
def slurm(lab: Laboratory) -> Iterator[SlurmCluster]:
    """Slurm as AWS PCS configures it from a plan of four nodes. The first node that starts lacks a device."""
    with SlurmCluster(lab, lab_plan(nodes=MAX_NODES, pcs_queues=("trn", "urgent:10"))) as cluster:
        cluster.prepare(prepare_one_fault)
        yield cluster
