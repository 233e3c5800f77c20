"""The lab, switched on once for all tests, and one deployed cluster for those that want a sound one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tools.lab.cluster_jobs import ClusterJobs, resources_of_jobs
from tools.lab.deployment import bootstrap, deploy, destroy
from tools.lab.hardware import hardware_of
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import Laboratory, laboratory
from tools.lab.node import Node
from tools.lab.paths import RUN
from tools.lab.plans import MAX_NODES, lab_plan
from tools.lab.pytorch import with_torchrun
from tools.lab.site import lose_a_device


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    """At its end, the sentence with which `make lab` closes is in .lab/run/shown."""
    with laboratory() as on:
        yield on
        shown = f"{on.delivered} nodes booted for real, {request.session.testscollected} tests of them"
        (RUN / "shown").write_text(shown)


@pytest.fixture(scope="session")
def hypervisor(lab: Laboratory) -> Iterator[Hypervisor]:
    run = bootstrap()
    assert run.code == 0, run.errors
    with Hypervisor(lab, hardware_of(lab_plan())) as running:
        yield running


def prepare_two_faults(number: int, node: Node) -> None:
    """One node lacks a device, and packets of another one get lost; all have PyTorch."""
    with_torchrun(number, node)
    if number == 0:
        lose_a_device(node)
    if number == 1:
        node.fit(replace(hardware_of(lab_plan()), efa_traffic=False))


@pytest.fixture(scope="session")
def cluster(lab: Laboratory, hypervisor: Hypervisor) -> Iterator[ClusterJobs]:
    """Sound nodes with PyTorch, deployed once: faulty ones were replaced, or the deployment had failed.

    A test that needs another deployment destroys it.
    """
    hypervisor.prepare(prepare_two_faults)
    # Tests have more of them replaced than are by default.
    settings = {"nodes": str(MAX_NODES), "node_replacements": "10", **resources_of_jobs(lab)}
    run = deploy(**settings)
    assert run.code == 0, run.errors
    yield ClusterJobs(lab, hypervisor, settings)
    destroy()
