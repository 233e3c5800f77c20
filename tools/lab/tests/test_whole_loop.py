"""From `cdk deploy` to verified nodes, and to the replacement of a node that later fails."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tools.lab.cluster_jobs import ClusterJobs
from tools.lab.deployment import members, output, tag_value
from tools.lab.laboratory import REGION, Laboratory
from tools.lab.layers import FRAMEWORK_ENVIRONMENT
from tools.lab.node import Node
from tools.lab.plans import MAX_NODES
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
HARDWARE_ERROR = "6,900000,1,-;NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i nd-id=3 action=TERMINATE_INSTANCE"


def checks_of(node: Node) -> list[dict[str, Any]]:
    return json.loads(node.execute("trn-node", "status", "--json"))["record"]["checks"]


@pytest.fixture
def nodes(cluster: ClusterJobs) -> Mapping[str, Node]:
    """The nodes of the deployed cluster, by instance ID; the first is the head node."""
    cluster.await_verified()
    return {node.instance.instance_id: node for node in cluster.nodes}


def test_deployment_ends_with_all_nodes_verified(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    assert output(lab, "Fleet") == f"{NODES} of {NODES} nodes verified"
    assert len(nodes) == NODES


def test_nodes_with_missing_device_or_without_efa_traffic_are_replaced(cluster: ClusterJobs) -> None:
    assert cluster.booted == NODES + 2


def test_nodes_pass_collective_test(nodes: Mapping[str, Node]) -> None:
    results = {check["found"] for node in nodes.values() for check in checks_of(node) if "internode" in check["name"]}
    assert results == {f"correct over {NODES} nodes, 88.0 GB/s at 256 MiB"}


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


def test_printed_command_runs_in_a_service_with_rank_0_on_head(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
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


def test_controller_tags_instances_of_verified_nodes(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    assert {tag_value(lab, instance_id, "trn:node") for instance_id in nodes} == {"verified"}


def test_node_with_a_hardware_error_is_replaced_by_a_verified_one(lab: Laboratory, nodes: Mapping[str, Node]) -> None:
    instance_id, node = next(iter(nodes.items()))
    node.execute("sh", "-c", f"echo '{HARDWARE_ERROR}' >/dev/kmsg")
    wait_for("the replacement", lambda: instance_id not in members(lab))
    (new,) = wait_for("its instance", lambda: members(lab) - nodes.keys())
    wait_for("its verification", lambda: tag_value(lab, new, "trn:node") == "verified")
