"""When a fleet is ready, when it is waited for and when it is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.fleet_verdict import FleetVerdict, fleet_verdict
from trainium_core.node_record import NodeRecord, State


def record(instance_id: str, state: State = "proven", reason: str = "") -> NodeRecord:
    return NodeRecord(instance_id=instance_id, state=state, reason=reason, time="2026-11-21T10:00:00Z")


def judge(
    nodes: int, instances: list[str], records: list[NodeRecord], failed_launches: list[str] | None = None
) -> FleetVerdict:
    return fleet_verdict(
        nodes=nodes,
        instances=instances,
        records={entry.instance_id: entry for entry in records},
        failed_launches=failed_launches or [],
    )


def test_a_fleet_is_ready_when_every_node_is_proven() -> None:
    assert judge(2, ["a", "b"], [record("a"), record("b")]) == FleetVerdict(state="ready", reason="2 of 2 nodes proven")


def test_a_silent_node_is_waited_for_by_name() -> None:
    verdict = judge(2, ["a", "b"], [record("a")])
    assert verdict.state == "waiting"
    assert verdict.reason == "1 of 2 nodes proven, 2 launched; no word from b"


def test_of_many_silent_nodes_five_are_named() -> None:
    assert judge(7, list("abcdefg"), []).reason.endswith("no word from a, b, c, d, e and others")


def test_a_node_that_is_not_launched_is_waited_for() -> None:
    assert judge(2, ["a"], [record("a")]).state == "waiting"


def test_a_failed_node_fails_the_fleet_with_its_own_reason() -> None:
    verdict = judge(2, ["a", "b"], [record("a"), record("b", "failed", "15 of 16 devices")])
    assert verdict == FleetVerdict(state="failed", reason="node b: 15 of 16 devices")


def test_the_record_of_a_node_that_is_gone_counts_for_nothing() -> None:
    assert judge(1, ["b"], [record("a", "failed", "old"), record("b")]).state == "ready"
    assert judge(1, ["b"], [record("a")]).state == "waiting"


def test_an_instance_that_is_listed_twice_is_one() -> None:
    assert judge(2, ["a", "a"], [record("a")]).state == "waiting"


def test_more_nodes_than_wanted_are_not_ready() -> None:
    assert judge(1, ["a", "b"], [record("a"), record("b")]).state == "waiting"


@pytest.mark.parametrize(
    "message",
    [
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows (VcpuLimitExceeded).",
        "Max spot instance count exceeded",
        "Your requested instance type (trn1.32xlarge) is not supported in your requested Availability Zone.",
        "You are not authorized to perform this operation.",
        "The image id '[ami-0123456789abcdef0]' does not exist",
        "The capacity reservation ID 'cr-0123456789abcdef0' does not exist.",
    ],
)
def test_a_launch_that_trying_again_cannot_mend_fails_the_fleet(message: str) -> None:
    verdict = judge(2, [], [], ["another", message])
    assert verdict.state == "failed"
    assert message in verdict.reason


@pytest.mark.parametrize(
    "message",
    [
        "We currently do not have sufficient trn1.32xlarge capacity in the Availability Zone you requested "
        "(InsufficientInstanceCapacity). Our system will be working on provisioning additional capacity.",
        "InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid. "
        "Invalid IAM Instance Profile name",
    ],
)
def test_a_launch_that_may_succeed_later_is_waited_for(message: str) -> None:
    verdict = judge(1, [], [], [message])
    assert verdict.state == "waiting"
    assert f"last failed launch: {message}" in verdict.reason


def test_a_failed_launch_is_no_longer_told_once_all_are_launched() -> None:
    assert "failed launch" not in judge(1, ["a"], [], ["InsufficientInstanceCapacity"]).reason


ids = st.sampled_from(list("abcdef"))


@given(
    nodes=st.integers(1, 6),
    instances=st.lists(ids, max_size=8),
    proven=st.sets(ids),
    failed=st.sets(ids),
    failed_launches=st.lists(st.text(), max_size=2),
)
def test_never_ready_unless_exactly_the_wanted_instances_are_there_and_proven(
    nodes: int, instances: list[str], proven: set[str], failed: set[str], failed_launches: list[str]
) -> None:
    records = [record(i) for i in proven] + [record(i, "failed", "broken") for i in failed]
    verdict = judge(nodes, instances, records, failed_launches)
    complete = len(set(instances)) == nodes and set(instances) <= proven - failed
    assert not (verdict.state == "ready" and not complete)
    assert verdict.reason
