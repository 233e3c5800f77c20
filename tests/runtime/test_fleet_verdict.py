"""When a fleet is ready, waited for, or failed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.fleet_verdict import FleetVerdict, FleetView, fleet_verdict
from trainium_runtime.recovery import Recovery
from trainium_wire.membership import Membership
from trainium_wire.node_record import CheckRecord, NodeRecord, State

NO_RECOVERY = Recovery(limit=0)


def membership(*instances: str) -> Membership:
    return Membership.of({instance: f"10.0.0.{ord(instance)}" for instance in instances})


def record(instance_id: str, state: State = "verified", reason: str = "", version: str = "") -> NodeRecord:
    time = "2026-11-21T10:00:00Z"
    return NodeRecord(instance_id=instance_id, state=state, reason=reason, membership=version, time=time)


def judge(
    nodes: int,
    instances: list[str],
    records: list[NodeRecord],
    failed_launches: list[str] | None = None,
    **more: Any,
) -> FleetVerdict:
    """The verdict on nodes that by default have all reached each other."""
    current = membership(*instances)
    connected = [replace(r, membership=r.membership or current.version) for r in records]
    view: Mapping[str, Any] = {
        "nodes": nodes,
        "instances": instances,
        "records": {entry.instance_id: entry for entry in connected},
        "recovery": NO_RECOVERY,
        "membership": current,
        "failed_launches": failed_launches or [],
    }
    return fleet_verdict(FleetView(**{**view, **more}))


def test_fleet_is_ready_with_every_node_verified() -> None:
    assert judge(2, ["a", "b"], [record("a"), record("b")]) == FleetVerdict(
        state="ready", reason="2 of 2 nodes verified", nodes=2
    )


def test_warnings_of_verified_nodes_are_part_of_the_verdict() -> None:
    untested = CheckRecord("internode-collectives", "a sum", "not tested", ok=True, warning="all-reduce: not tested")
    nodes = [replace(record(name), checks=(untested,)) for name in "ab"]
    verdict = judge(2, ["a", "b"], nodes)
    assert (verdict.state, verdict.nodes) == ("ready", 2)
    assert verdict.reason == "2 of 2 nodes verified; warnings: nodes a, b: all-reduce: not tested"


def test_silent_node_is_waited_for_by_name() -> None:
    verdict = judge(2, ["a", "b"], [record("a")])
    assert verdict.state == "waiting"
    assert verdict.reason == "1 of 2 nodes verified, 2 launched; no record yet from b"


def test_failed_node_fails_the_fleet_with_its_reason() -> None:
    verdict = judge(2, ["a", "b"], [record("a"), record("b", "failed", "15 of 16 devices")])
    assert verdict == FleetVerdict(state="failed", reason="node b: 15 of 16 devices")


def test_replaced_failed_node_is_waited_for_with_its_reason() -> None:
    recovery = Recovery(limit=2, numbers={"b": 1})
    verdict = judge(2, ["a", "b"], [record("a"), record("b", "failed", "15 of 16 devices")], recovery=recovery)
    assert verdict.state == "waiting"
    assert verdict.reason == "1 of 2 nodes verified, 2 launched; node b: 15 of 16 devices; being replaced (1 of 2)"


def test_failed_fleet_names_the_nodes_replaced_before() -> None:
    recovery = Recovery(limit=1, numbers={})
    verdict = judge(1, ["b"], [record("b", "failed", "disk full")], recovery=recovery, replaced={"a": "no driver"})
    assert verdict.reason == (
        "node b: disk full; not replaced: 1 of 1 replacements within 24 hours are used; "
        "failed before, and replaced: node a: no driver"
    )


def test_console_error_of_silent_node_fails_the_fleet() -> None:
    verdict = judge(2, ["a", "b"], [record("a")], console={"b": "S3 refused the record: AccessDenied"})
    assert verdict.state == "failed"
    assert verdict.reason == (
        "node b: S3 refused the record: AccessDenied (read from its console: it could not report)"
    )


def test_record_overrides_an_old_console_line() -> None:
    assert judge(1, ["a"], [record("a")], console={"a": "S3 did not answer"}).state == "ready"


def test_nodes_that_have_not_reached_each_other_are_waited_for() -> None:
    verdict = judge(2, ["a", "b"], [record("a"), record("b", version="older")])
    assert verdict.state == "waiting"
    assert verdict.reason.endswith("nodes that have not reached all others yet: b")


def test_membership_of_other_nodes_is_not_enough() -> None:
    old = membership("a", "c")
    records = [record("a", version=old.version), record("b", version=old.version)]
    assert judge(2, ["a", "b"], records, membership=old).state == "waiting"


def test_nodes_without_a_membership_are_not_ready() -> None:
    records = [record("a", version="-"), record("b", version="-")]
    assert judge(2, ["a", "b"], records, membership=Membership()).state == "waiting"


def test_fleet_with_a_draining_node_waits_with_its_reason() -> None:
    verdict = judge(1, ["a"], [record("a", "draining", "retires at noon")])
    assert verdict.state == "waiting"
    assert "node a: draining: retires at noon" in verdict.reason


def test_fleet_with_a_node_being_replaced_waits() -> None:
    verdict = judge(1, ["a"], [record("a")], leaving={"a"})
    assert verdict.state == "waiting"
    assert "being replaced by Auto Scaling: a" in verdict.reason


def test_suspended_processes_are_reported_while_waiting() -> None:
    suspended = ("AZRebalance", "Launch", "ReplaceUnhealthy")
    waiting = judge(2, ["a"], [record("a")], suspended=suspended)
    assert waiting.reason.endswith(
        "processes of the Auto Scaling group are suspended; resume them: Launch, ReplaceUnhealthy"
    )
    assert judge(1, ["a"], [record("a")], suspended=suspended).state == "ready"


def test_fleet_with_more_nodes_than_planned_waits() -> None:
    verdict = judge(1, ["a", "b"], [record("a"), record("b")])
    assert verdict.state == "waiting"
    assert "1 more than planned still exist" in verdict.reason


@pytest.mark.parametrize(
    "message",
    [
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows (VcpuLimitExceeded).",
        "The image id '[ami-0123456789abcdef0]' does not exist",
        "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
        "Client.InternalError: Client error on launch",
        "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
    ],
)
def test_permanent_launch_failure_fails_the_fleet(message: str) -> None:
    verdict = judge(2, [], [], ["another", message])
    assert verdict.state == "failed"
    assert message in verdict.reason
    assert judge(1, ["a"], [record("a")], [message]).state == "ready"


def test_quota_failure_waits_while_a_replaced_node_may_count() -> None:
    message = "You have requested more vCPU capacity than your current vCPU limit of 128 allows (VcpuLimitExceeded)."
    gone = record("a", "failed", "no driver")
    assert judge(1, [], [gone], [message]).state == "waiting"
    assert judge(1, [], [gone], ["The image id '[ami-0123456789abcdef0]' does not exist"]).state == "failed"
    replaced = Recovery(limit=1, numbers={"a": 1})
    assert judge(2, ["a"], [gone], [message], recovery=replaced).state == "failed"


def test_quota_failure_waits_while_ended_nodes_may_count() -> None:
    message = "Max spot instance count exceeded"
    assert judge(1, [], [record("a")], [message], still_counted=True).state == "waiting"
    assert judge(1, [], [record("a")], [message]).state == "failed"


@pytest.mark.parametrize(
    "message",
    [
        "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
        "Server.InternalError: Internal error on launch",
        "We currently do not have sufficient trn1.32xlarge capacity in the Availability Zone you requested "
        "(InsufficientInstanceCapacity). Our system will be working on provisioning additional capacity.",
        "InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid. "
        "Invalid IAM Instance Profile name",
    ],
)
def test_temporary_launch_failure_is_waited_for(message: str) -> None:
    verdict = judge(1, [], [], [message])
    assert verdict.state == "waiting"
    assert f"last failed launch: {message}" in verdict.reason


@pytest.mark.parametrize(
    ("message", "lacks"),
    [
        ("We currently do not have sufficient trn1.32xlarge capacity in the Availability Zone you requested.", True),
        ("Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available", True),
        ("ReservationCapacityExceeded: The requested reservation does not have sufficient compatible capacity.", False),
        ("Invalid IAM Instance Profile name", False),
    ],
)
def test_missing_capacity_is_told_from_other_failed_launches(message: str, lacks: bool) -> None:
    assert judge(2, ["a"], [record("a")], [message]).lacks_capacity is lacks
    assert not judge(1, ["a"], [], [message]).lacks_capacity


def test_place_of_a_failed_node_is_no_missing_capacity() -> None:
    message = "We currently do not have sufficient trn1.32xlarge capacity in the Availability Zone you requested."
    assert not judge(1, [], [record("a", "failed", "no driver")], [message]).lacks_capacity


ids = st.sampled_from(list("abcdef"))


@given(
    nodes=st.integers(1, 6),
    instances=st.lists(ids, max_size=8),
    verified=st.sets(ids),
    failed=st.sets(ids),
    failed_launches=st.lists(st.text(), max_size=2),
    replaced=st.sets(ids),
)
def test_fleet_is_ready_only_with_exactly_the_wanted_nodes_verified(
    nodes: int,
    instances: list[str],
    verified: set[str],
    failed: set[str],
    failed_launches: list[str],
    replaced: set[str],
) -> None:
    records = [record(i) for i in verified] + [record(i, "failed", "broken") for i in failed]
    recovery = Recovery(limit=1, numbers=dict.fromkeys(replaced, 1))
    verdict = judge(nodes, instances, records, failed_launches, recovery=recovery)
    complete = len(set(instances)) == nodes and set(instances) <= verified - failed
    assert not (verdict.state == "ready" and not complete)
    assert verdict.reason


def test_scale_to_zero_waits_for_the_last_node() -> None:
    failed = record("a", "failed", "15 of 16 Neuron devices")
    assert judge(0, ["a"], [failed]) == FleetVerdict(state="waiting", reason="no nodes are planned; 1 still exist")
    assert judge(0, [], [failed]) == FleetVerdict(state="ready", reason="no nodes, as planned")


def test_single_node_needs_no_membership() -> None:
    assert judge(1, ["a"], [record("a", version="-")], membership=Membership()).state == "ready"
