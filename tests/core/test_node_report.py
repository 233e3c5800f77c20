"""The report of `trn nodes` about each node."""

from datetime import UTC, datetime

import pytest

from trainium_core.nodes.report import DeployedNodes, JobBounds, NodeInstance, NodesReport, nodes_report
from trainium_wire.membership import Membership
from trainium_wire.node_record import NodeRecord, State, StoredRecord

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MEMBERSHIP = Membership.of({"i-a": "10.0.0.1", "i-b": "10.0.0.2"})


def instance(instance_id: str, state: str = "running", *, leaving: bool = False) -> NodeInstance:
    return NodeInstance(
        instance_id=instance_id, zone="usw2-az4", address="10.0.0.1", state=state, launched=NOON, leaving=leaving
    )


def stored(
    instance_id: str, state: State = "verified", reason: str = "", membership: str = MEMBERSHIP.version
) -> StoredRecord:
    record = NodeRecord(
        instance_id=instance_id, state=state, reason=reason, membership=membership, time="2026-11-21T12:00:00Z"
    )
    return StoredRecord(record=record, written=NOON)


def report(
    *records: StoredRecord, instances: tuple[NodeInstance, ...] = (instance("i-a"), instance("i-b")), limit: int = 0
) -> NodesReport:
    deployed = DeployedNodes(
        wanted=2,
        instances=instances,
        records={each.record.instance_id: each for each in records},
        membership=MEMBERSHIP,
    )
    return nodes_report(deployed, replacements=limit)


def message(shown: NodesReport) -> list[tuple[str, str]]:
    return [(node.state, node.problem) for node in shown.nodes]


def test_failed_node_is_shown_with_reason_and_replacement() -> None:
    shown = report(stored("i-a"), stored("i-b", "failed", "no driver"), limit=2)
    assert message(shown)[1] == ("failed", "no driver; being replaced (1 of 2)")
    assert not shown.is_final


def test_node_failed_without_replacement_ends_the_watch() -> None:
    shown = report(stored("i-a"), stored("i-b", "failed", "no driver"))
    assert message(shown)[1] == ("failed", "no driver")
    assert shown.verdict.state == "failed"
    assert shown.is_final


@pytest.mark.parametrize(
    ("least", "most", "states", "verdict"),
    [
        (0, 4, [], ("ready", "no nodes, since no job needs any; jobs start up to 4")),
        (1, 4, [], ("waiting", "0 of 1 nodes verified; jobs start up to 4")),
        (0, 4, ["verified", "verified"], ("ready", "2 of 2 nodes verified; jobs start up to 4")),
        (0, 4, ["verified", None], ("waiting", "1 of 2 nodes verified; jobs start up to 4")),
        (0, 4, ["verified", "failed"], ("failed", "failed: i-b")),
        (0, 1, ["verified"], ("failed", "the maximum of the group is 1, not 4: jobs that need more nodes wait")),
    ],
)
def test_nodes_that_start_with_jobs_are_judged_one_by_one(
    least: int, most: int, states: list[State | None], verdict: tuple[str, str]
) -> None:
    by_node = dict(zip(("i-a", "i-b"), states, strict=False))
    deployed = DeployedNodes(
        wanted=least,
        instances=tuple(instance(node) for node in by_node),
        records={node: stored(node, state, membership="") for node, state in by_node.items() if state},
        membership=Membership(),
        for_jobs=JobBounds(most=most, planned=4),
    )
    shown = nodes_report(deployed, replacements=2)
    state, reason = verdict
    assert (shown.verdict.state, shown.asleep) == (state, False)
    assert shown.verdict.reason.startswith(reason)


def test_group_with_no_desired_nodes_is_asleep_and_not_ready() -> None:
    shown = nodes_report(DeployedNodes(wanted=0, instances=(), records={}, membership=MEMBERSHIP), replacements=2)
    assert shown.verdict.state == "waiting"
    assert shown.asleep
    assert shown.is_final


def test_node_that_has_not_reached_its_peers_is_reported() -> None:
    assert message(report(stored("i-a"), stored("i-b", membership="")))[1] == (
        "verified",
        "has not yet reached all others",
    )


def test_verified_node_being_replaced_is_leaving() -> None:
    shown = report(stored("i-a"), stored("i-b"), instances=(instance("i-a"), instance("i-b", leaving=True)))
    assert message(shown)[1] == ("leaving", "Auto Scaling replaces it")
