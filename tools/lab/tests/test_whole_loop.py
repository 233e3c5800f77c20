"""From `cdk deploy` to nodes that the fleet gate accepts, or to a stack event with the reason why it does not."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tools.lab.cluster_jobs import OWN_BUCKET, ClusterJobs, job_file
from tools.lab.deployment import deploy, destroy, failures, members, output, tag_value
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import REGION, Laboratory
from tools.lab.layers import FRAMEWORK_ENVIRONMENT
from tools.lab.node import Node
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.plans import MAX_NODES
from tools.lab.proxy import WRITING_DENIED
from tools.lab.site import SHORT_TIMEOUTS, lose_a_device
from tools.lab.waiting import wait_for

NODES = MAX_NODES
LIMIT_BYTES = 16_384
VARIABLES = "$FI_PROVIDER $HEAD_NODE $TRN_NODE_RANK $TRN_NODES $AWS_REGION ${NEURON_RT_ROOT_COMM_ID:-unset}"
SCRIPT = 'import os; os.write(1, "{RANK} {MASTER_ADDR}\\n".format_map(os.environ).encode())\n'
SERVICE = """\
[Service]
Type=oneshot
WorkingDirectory=/srv
StandardOutput=file:/srv/said
StandardError=journal
ExecStart={line}
"""
MODULES = tuple("abc")
FAKE_COMPILER = REPOSITORY / "tests/userdata/fake_compiler.py"
"""Runs on a node with the node's own Python, and uses the layout of PyTorch/XLA's cache."""
COMPILES = f"python3 {FAKE_COMPILER.name} xla $NEURON_COMPILE_CACHE_URL {' '.join(MODULES)}"
HARDWARE_ERROR = "6,900000,1,-;NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i nd-id=3 action=TERMINATE_INSTANCE"


def checks_of(node: Node) -> list[dict[str, Any]]:
    return json.loads(node.execute("trn-node", "status", "--json"))["record"]["checks"]


@pytest.fixture
def nodes(cluster: ClusterJobs) -> Mapping[str, Node]:
    """The nodes of the deployed cluster, by instance id; the first is the head."""
    cluster.await_proven()
    return {node.instance.instance_id: node for node in cluster.nodes}


@pytest.fixture
def _removed_at_the_end() -> Iterator[None]:
    yield
    run = destroy()
    assert run.code == 0, run.errors


def test_deployment_of_healthy_nodes_succeeds(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    assert output(lab, "Fleet") == f"{NODES} of {NODES} nodes proven"
    assert len(nodes) == NODES


def test_nodes_with_missing_device_or_packet_loss_are_replaced(cluster: ClusterJobs) -> None:
    assert cluster.booted == NODES + 2


def test_nodes_pass_collective_test(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    results = {check["found"] for node in nodes.values() for check in checks_of(node) if "internode" in check["name"]}
    assert results == {f"correct over {NODES} nodes, 88.0 GB/s at 256 MiB"}
    assert lab


def test_user_data_has_no_token_and_a_kilobyte_to_spare(nodes: Mapping[str, Node]) -> None:
    for node in nodes.values():
        assert b"${Token[" not in node.instance.user_data
        assert len(node.instance.user_data) <= LIMIT_BYTES - 1024


def test_login_shell_has_cluster_variables(nodes: Mapping[str, Node]) -> None:
    head = next(iter(nodes.values())).instance.address
    for rank, node in enumerate(nodes.values()):
        shown = node.execute("env", "--ignore-environment", "bash", "-lc", f"echo {VARIABLES}; command -v torchrun")
        program = f"/{FRAMEWORK_ENVIRONMENT}/bin/torchrun"
        assert shown.split() == ["efa", head, str(rank), str(NODES), REGION, "unset", program]


def test_printed_command_runs_service_with_rank_0_on_head(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    line = output(lab, "Torchrun")

    def train(node: Node) -> str:
        node.execute("sh", "-c", f"cat >/run/systemd/system/train.service <<'END'\n{SERVICE.format(line=line)}END")
        node.execute("sh", "-c", f"cat >/srv/train.py <<'END'\n{SCRIPT}END")
        node.execute("systemctl", "start", "train.service")
        return node.execute("cat", "/srv/said")

    with ThreadPoolExecutor(NODES) as side_by_side:
        outputs = list(side_by_side.map(train, nodes.values()))
    address = next(iter(nodes.values())).instance.address
    ranks = [sorted(int(line.split()[0]) for line in text.splitlines()) for text in outputs]
    assert ranks == [list(range(first, first + 32)) for first in range(0, NODES * 32, 32)]
    assert {line.split()[1] for text in outputs for line in text.splitlines()} == {address}


def test_reconciler_tags_instances_of_proven_nodes(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    assert {tag_value(lab, instance_id, "trn:node") for instance_id in nodes} == {"proven"}


def test_node_with_a_hardware_error_is_replaced_by_a_proven_one(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    instance_id, node = next(iter(nodes.items()))
    node.execute("sh", "-c", f"echo '{HARDWARE_ERROR}' >/dev/kmsg")
    wait_for("the replacement", lambda: instance_id not in members(lab), seconds=90)
    (new,) = wait_for("its instance", lambda: members(lab) - nodes.keys())
    wait_for("its proof", lambda: tag_value(lab, new, "trn:node") == "proven")


def install_compiler(_number: int, node: Node) -> None:
    """Install a compiler in this version: the compiling program is part of the job's source."""
    (packages,) = (node.root / FRAMEWORK_ENVIRONMENT / "lib").glob("python3*/site-packages")
    (packages / "neuronx_cc-2.21.18209.0+043b1bf7.dist-info").mkdir()


def compile_in_a_job(cluster: ClusterJobs, name: str) -> tuple[dict[str, Any], str, str]:
    """The node's record of its cache, the modules compiled according to its log, and the output of `trn jobs`."""
    wait_for("all nodes to reach each other", cluster.is_proven, pause=1)
    source = RUN / "compiles"
    source.mkdir(exist_ok=True)
    shutil.copy(FAKE_COMPILER, source)
    file = job_file(name, COMPILES, source, nodes=1)
    job = json.loads(cluster.trn("run", "--detach", "--json", str(file)))["job"]["id"]
    end = cluster.end_of(job)
    assert end["result"] == "succeeded", (end, cluster.log(job, 1, 0))
    record = cluster.content(job, "attempts/1/nodes/0.json")
    assert record
    (cache,) = record["compile_caches"]
    return cache, "".join(re.findall("^compiled (.*)$", cluster.log(job, 1, 0), re.MULTILINE)), cluster.trn("jobs", job)


@pytest.mark.usefixtures("nodes", "_removed_at_the_end")
def test_second_cluster_with_the_same_cache_starts_warm(
    lab: Laboratory, hypervisor: Hypervisor, cluster: ClusterJobs
) -> None:
    for node in cluster.nodes:
        install_compiler(0, node)
    cold, compiled, _ = compile_in_a_job(cluster, "cold")
    assert (compiled, cold["misses"], cold["stored"]) == ("".join(MODULES), len(MODULES), len(MODULES))
    run = destroy()
    assert run.code == 0, run.errors
    hypervisor.prepare(install_compiler)
    settings = {"nodes": "1", "cache_bucket": OWN_BUCKET}
    run = deploy(**settings)
    assert run.code == 0, run.errors
    warm, compiled, shown = compile_in_a_job(ClusterJobs(lab, hypervisor, settings), "warm")
    assert (compiled, warm["misses"], warm["fetched"], warm["warnings"]) == ("", 0, len(MODULES), [])
    assert warm["hits"] == len(MODULES)
    assert re.search(rf"cache +xla: {len(MODULES)} hits, 0 misses", shown), shown


@pytest.mark.usefixtures("_removed_at_the_end")
def test_stack_event_names_what_a_node_lacks(lab: Laboratory, hypervisor: Hypervisor) -> None:
    destroy()
    hypervisor.prepare(lambda _number, node: lose_a_device(node))
    run = deploy(nodes="1", node_recovery="off")
    assert run.code == 1
    sentence = r"node i-[0-9a-f]+: 15 of 16 Neuron devices \(missing 7\); 30 of 32 NeuronCores"
    assert any(re.search(sentence, reason) for reason in failures(lab)), run.errors


@pytest.mark.usefixtures("_removed_at_the_end")
def test_stack_event_quotes_the_console_of_a_silent_node(lab: Laboratory, hypervisor: Hypervisor) -> None:
    def cut_off(_number: int, node: Node) -> None:
        node.set_environment(SHORT_TIMEOUTS)
        lab.proxy.s3_faults[node.instance.address] = WRITING_DENIED

    hypervisor.prepare(cut_off)
    run = deploy(nodes="1")
    assert run.code == 1
    quoted = "403 AccessDenied Access Denied (read from its console: it could not report)"
    assert any(quoted in reason for reason in failures(lab)), run.errors
