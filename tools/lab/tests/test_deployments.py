"""Clusters of one node, each deployed and destroyed by one test: a warm compile cache, and reasons in stack events."""

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tools.lab.cluster_jobs import OWN_BUCKET, ClusterJobs, make_job_resources, write_job_file
from tools.lab.deployment import deploy, destroy, failures
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import Laboratory
from tools.lab.layers import FRAMEWORK_ENVIRONMENT
from tools.lab.node import Node
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.proxy import WRITING_DENIED
from tools.lab.site import SHORT_TIMEOUTS, lose_a_device
from tools.lab.waiting import wait_for

MODULES = tuple("abc")
FAKE_COMPILER = REPOSITORY / "tests/userdata/fake_compiler.py"
"""Runs on a node with the node's own Python, and uses the layout of PyTorch/XLA's cache."""
COMPILES = f"python3 {FAKE_COMPILER.name} xla $NEURON_COMPILE_CACHE_URL {' '.join(MODULES)}"


@pytest.fixture(autouse=True)
def _removed_at_the_end() -> Iterator[None]:
    yield
    run = destroy()
    assert run.code == 0, run.errors


def install_compiler(_number: int, node: Node) -> None:
    """Install only the metadata of a compiler: the job's source contains the program that compiles."""
    (packages,) = (node.root / FRAMEWORK_ENVIRONMENT / "lib").glob("python3*/site-packages")
    (packages / "neuronx_cc-2.21.18209.0+043b1bf7.dist-info").mkdir()


def compile_in_a_job(cluster: ClusterJobs, name: str) -> tuple[dict[str, Any], str, str]:
    """Run a job that compiles.

    Returns the node's record of its cache, the modules compiled according to its log, and the output of `trn jobs`.
    """
    wait_for("all nodes to reach each other", cluster.is_verified, pause=1)
    source = RUN / "compiles"
    source.mkdir(exist_ok=True)
    shutil.copy(FAKE_COMPILER, source)
    file = write_job_file(name, COMPILES, source, nodes=1)
    job = json.loads(cluster.trn("run", "--detach", "--json", str(file)))["job"]["id"]
    end = cluster.end_of(job)
    assert end["result"] == "succeeded", (end, cluster.log(job, 1, 0))
    record = cluster.content(job, "attempts/1/nodes/0.json")
    assert record
    (cache,) = record["compile_caches"]
    return cache, "".join(re.findall("^compiled (.*)$", cluster.log(job, 1, 0), re.MULTILINE)), cluster.trn("jobs", job)


def test_second_cluster_with_the_same_cache_starts_warm(lab: Laboratory, hypervisor: Hypervisor) -> None:
    make_job_resources(lab)
    hypervisor.prepare(install_compiler)
    settings = {"nodes": "1", "cache_bucket": OWN_BUCKET}

    def deployed() -> ClusterJobs:
        run = deploy(**settings)
        assert run.code == 0, run.errors
        return ClusterJobs(lab, hypervisor, settings)

    cold, compiled, _ = compile_in_a_job(deployed(), "cold")
    assert (compiled, cold["misses"], cold["stored"]) == ("".join(MODULES), len(MODULES), len(MODULES))
    run = destroy()
    assert run.code == 0, run.errors
    warm, compiled, shown = compile_in_a_job(deployed(), "warm")
    assert (compiled, warm["misses"], warm["fetched"], warm["warnings"]) == ("", 0, len(MODULES), [])
    assert warm["hits"] == len(MODULES)
    assert re.search(rf"cache +xla: {len(MODULES)} hits, 0 misses", shown), shown


def test_stack_event_names_what_a_node_lacks(lab: Laboratory, hypervisor: Hypervisor) -> None:
    hypervisor.prepare(lambda _number, node: lose_a_device(node))
    run = deploy(nodes="1", node_recovery="off")
    assert run.code == 1
    sentence = r"node i-[0-9a-f]+: 15 of 16 Neuron devices \(missing: device 7\); 30 of 32 NeuronCores"
    assert any(re.search(sentence, reason) for reason in failures(lab)), run.errors


def test_stack_event_quotes_the_console_of_a_silent_node(lab: Laboratory, hypervisor: Hypervisor) -> None:
    def cut_off(_number: int, node: Node) -> None:
        node.set_environment(SHORT_TIMEOUTS)
        lab.proxy.s3_faults[node.instance.address] = WRITING_DENIED

    hypervisor.prepare(cut_off)
    run = deploy(nodes="1")
    assert run.code == 1
    quoted = "403 AccessDenied Access Denied (read from its console: it could not report)"
    assert any(quoted in reason for reason in failures(lab)), run.errors
