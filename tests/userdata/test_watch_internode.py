"""The handling of a membership on a node until all nodes have computed together."""

from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.watch_node import WatchNode
from trainium_userdata.node.trn_node import cluster, files, watch
from trainium_userdata.node.trn_node.cluster import PEERS_TIMEOUT_SECONDS, InternodeResult
from trainium_userdata.node.trn_node.internode import NAME
from trainium_userdata.node.trn_node.internode_rounds import Task

NODES = [("i-0aaaaaaaaaaaaaaa1", "127.0.0.2"), (INSTANCE_ID, "127.0.0.3"), ("i-0aaaaaaaaaaaaaaa2", "127.0.0.4")]


def reaches_all(_target: tuple[str, int]) -> str:
    return ""


def reaches_all_but_the_first(target: tuple[str, int]) -> str:
    return target[0] if target[0] == NODES[0][1] else ""


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> WatchNode:
    monkeypatch.setattr(cluster, "_unreachable_address", reaches_all)
    return WatchNode(tmp_path, aws, monkeypatch)


class InternodeStandIn:
    """The test over all nodes, which ends when `outcome` is set.

    Attributes:
        tasks: The memberships for which the test was started or read.
    """

    def __init__(self) -> None:
        self.outcome: InternodeResult | None = None
        self.tasks: list[Task] = []

    def poll(self, task: Task) -> InternodeResult | None:
        self.tasks.append(task)
        return self.outcome


@pytest.fixture
def internode(node: WatchNode, monkeypatch: pytest.MonkeyPatch) -> InternodeStandIn:
    made = InternodeStandIn()
    monkeypatch.setattr(watch, "InternodeProcess", lambda: made)
    node.plan(internode={"step_seconds": 1})
    node.start()
    node.membership(NODES)
    return made


def internode_check(*, ok: bool) -> dict[str, object]:
    return {"name": NAME, "expected": "right", "found": "right" if ok else "wrong", "ok": ok}


def test_membership_is_unused_until_its_nodes_computed_together(node: WatchNode, internode: InternodeStandIn):
    node.pass_time(300)
    assert (node.sent, files.read("etc/trn/cluster")) == (None, "")
    assert {task.version for task in internode.tasks} == {"v1"}
    assert internode.tasks[0].nodes == dict(NODES)


def test_nodes_that_compute_together_are_in_the_membership(node: WatchNode, internode: InternodeStandIn):
    internode.outcome = InternodeResult(internode_check(ok=True), "")
    node.pass_time()
    assert node.sent
    assert (node.sent.state, node.sent.membership) == ("verified", "v1")
    assert [check.name for check in node.sent.checks] == ["neuron-devices", "peers", NAME]
    assert "TRN_NODE_RANK=1" in files.read("etc/trn/cluster")


def test_faulty_node_of_a_membership_fails(node: WatchNode, internode: InternodeStandIn):
    internode.outcome = InternodeResult(
        internode_check(ok=False), "all-reduce over nodes: no correct result with i-1, i-2"
    )
    node.pass_time()
    assert node.sent
    assert (node.sent.state, node.sent.reason) == ("failed", "all-reduce over nodes: no correct result with i-1, i-2")


def test_nodes_that_do_not_reach_each_other_do_not_compute_together(
    node: WatchNode, internode: InternodeStandIn, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cluster, "_unreachable_address", reaches_all_but_the_first)
    node.pass_time(PEERS_TIMEOUT_SECONDS + 30)
    assert node.record.state == "draining"
    assert not internode.tasks


def test_suppressed_test_over_all_nodes_is_skipped(node: WatchNode, internode: InternodeStandIn):
    node.plan(internode={"step_seconds": 1}, suppress_checks=[NAME])
    node.pass_time()
    assert node.sent
    assert node.sent.membership == "v1"
    assert not internode.tasks
