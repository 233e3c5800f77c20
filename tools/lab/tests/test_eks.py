"""Nodes of an EKS cluster are verified before pods run on them.

systemd, cloud-init and the programs of this package are real, and the units of nodeadm and kubelet have the order and
dependencies of the published ones. nodeadm, kubelet and the API server are stand-ins: what is not shown is the merge of
the user data by EKS, containers and their devices, the scheduler, and how long the real programs take.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tools.lab.eks.api_server import ApiServer
from tools.lab.eks.cluster import EksNodes, api_server
from tools.lab.laboratory import Laboratory
from tools.lab.node import Node
from tools.lab.site import lose_a_device
from tools.lab.waiting import wait_for
from trainium_wire.kubernetes import NEURON, STATE_ANNOTATION, UNVERIFIED
from trainium_wire.node_record import NodeRecord

VERIFIED = "verified"


@pytest.fixture(scope="module")
def api(lab: Laboratory) -> Iterator[ApiServer]:
    with api_server(lab) as server:
        yield server


@pytest.fixture(scope="module")
def nodes(lab: Laboratory, api: ApiServer) -> EksNodes:
    return EksNodes(lab, api)


@pytest.fixture
def node(nodes: EksNodes) -> Iterator[Node]:
    made = nodes.node()
    yield made
    nodes.lab.remove(made)


def wait_for_state(api: ApiServer, node: Node, start: str) -> str:
    """Wait until the annotation of the node begins with a text, and return it."""
    name = node.instance.host_name

    def state() -> str | None:
        found = api.annotations(name).get(STATE_ANNOTATION, "") if name in api.nodes else ""
        return found if found.startswith(start) else None

    return wait_for(f"the state {start} of {node.name}", state)


def wait_for_failure(nodes: EksNodes, node: Node) -> NodeRecord:
    record = nodes.site.outcome(node).record
    assert record
    assert record.state == "failed"
    return record


def tainted(api: ApiServer, node: Node) -> list[bool]:
    """Whether the node was unverified after each change."""
    return [UNVERIFIED in change.taints for change in api.changes[node.instance.host_name]]


def test_node_registers_with_the_taint_and_loses_it_after_the_tests(nodes: EksNodes, api: ApiServer, node: Node):
    node.power_on()
    wait_for_state(api, node, VERIFIED)
    assert tainted(api, node) == [True, True, False]
    assert api.taints(node.instance.host_name) == [NEURON]
    record = nodes.site.record(node)
    assert record
    assert record.state == "verified"
    names = {check.name for check in record.checks}
    assert names >= {"neuron-devices", "efa-devices", "time-sync", "self-test", "memory-test", "collectives"}
    # After the taint.
    wait_for("the readiness", lambda: node.succeeds("test", "-e", "/tmp/trn-verified"))


def test_rebooted_node_is_tainted_and_verified_again(nodes: EksNodes, api: ApiServer, node: Node):
    node.power_on()
    wait_for_state(api, node, VERIFIED)
    before = len(api.changes[node.instance.host_name])
    node.power_off()
    node.power_on()
    wait_for("another verification", lambda: tainted(api, node)[before:] == [True, False])
    node.power_off()
    lose_a_device(node)
    node.power_on()
    wait_for("the failure", lambda: (record := nodes.site.record(node)) and record.state == "failed")
    assert not node.succeeds("systemctl", "is-active", "kubelet.service")
    assert len(api.changes[node.instance.host_name]) == before + 2


def test_node_without_a_device_never_joins(nodes: EksNodes, api: ApiServer, node: Node):
    lose_a_device(node)
    node.power_on()
    record = wait_for_failure(nodes, node)
    assert record.reason.startswith("15 of 16 Neuron devices (missing: device 7)")
    assert node.instance.host_name not in api.nodes
    assert not node.succeeds("systemctl", "is-active", "kubelet.service")
    # journald copies the log to the console.
    wait_for("the line on the console", lambda: "WRONG neuron-devices" in node.console_text())


def test_node_with_a_wrong_core_keeps_the_taint_and_shows_the_reason(nodes: EksNodes, api: ApiServer, node: Node):
    node.fit(replace(nodes.site.hardware, zero_cores=(5,)))
    node.power_on()
    state = wait_for_state(api, node, "failed")
    assert state.startswith("failed: core 5 returns zeros where the CPU returns")
    assert all(tainted(api, node))
    assert wait_for_failure(nodes, node).reason == state.removeprefix("failed: ")
    assert not node.succeeds("test", "-e", "/tmp/trn-verified")


def test_node_without_its_program_never_joins(nodes: EksNodes, api: ApiServer, node: Node):
    host = "trnlab-assets.s3.us-west-2.amazonaws.com"
    nodes.lab.proxy.hosts_down[node.instance.address] = frozenset({host})
    node.power_on()
    wait_for("the line on the console", lambda: nodes.site.console_error(node))
    assert (nodes.site.console_error(node) or "").startswith("the node script could not be fetched: aws s3 cp")
    assert node.instance.host_name not in api.nodes


def test_kubelet_without_the_taint_in_its_flags_does_not_start(nodes: EksNodes, api: ApiServer, node: Node):
    node.write("usr/lib/trnlab/nodeadm.py", node.read("usr/lib/trnlab/nodeadm.py").replace("nodeadm.d", "ignored.d"))
    node.power_on()
    assert wait_for_failure(nodes, node).reason.startswith("kubelet would register the node without the taint")
    assert node.instance.host_name not in api.nodes
