"""What a deployment decides about the group of a snapshot."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.snapshots import NOON, SUBNET, TEMPLATE, members, snapshot, stored
from trainium_runtime.controller.deployment import (
    DeploymentDecision,
    FleetDeployment,
    Progress,
    decide,
    ended_recently,
    failed_launches,
)
from trainium_runtime.controller.snapshot import Snapshot, StackSnapshot
from trainium_runtime.pilot_clock import ClockDecision

UPDATING = StackSnapshot(status="UPDATE_IN_PROGRESS", created=NOON)
ROLLING_BACK = StackSnapshot(status="UPDATE_ROLLBACK_IN_PROGRESS", created=NOON)
WANTED = FleetDeployment(nodes=2, template=TEMPLATE, subnet=SUBNET)
OVER_QUOTA = "You have requested more vCPU capacity than your current vCPU limit of 0 allows. Launching failed."


def seen(instances: tuple[str, ...] = ("i-1", "i-2"), /, *records: Any, **fields: Any) -> Snapshot:
    return snapshot(instances, *records, **{"stack": UPDATING, **fields})


def verified(*instances: str, **fields: Any) -> Snapshot:
    """Verified nodes that have reached each other."""
    membership = members(*instances)
    records = [stored(instance, "verified", membership=membership.version) for instance in instances]
    return seen(instances, *records, **{"membership": membership, **fields})


def test_group_of_verified_nodes_is_ready() -> None:
    found = decide(verified("i-1", "i-2"), WANTED, Progress())
    assert (found.verdict.state, found.verdict.nodes, found.size) == ("ready", 2, None)


def test_size_is_set_once_and_a_later_size_of_others_ends_the_wait() -> None:
    first = decide(seen(("i-1",)), WANTED, Progress())
    assert first.size == 2
    reached = decide(seen(), WANTED, first.progress)
    assert reached.progress.sized_to == 2
    stopped, progress = seen(desired=0), reached.progress
    found: list[DeploymentDecision] = []
    for _ in range(3):
        found.append(decide(stopped, WANTED, progress))
        progress = found[-1].progress
    assert [decision.size for decision in found] == [None, None, None]
    assert [decision.verdict.state for decision in found] == ["waiting", "waiting", "ready"]
    reason = "the desired size of the group became 0 while the deployment waited for 2 nodes"
    assert (found[-1].verdict.reason, found[-1].verdict.nodes) == (reason, 0)


def test_clock_lowers_the_number_of_nodes_and_does_not_raise_it() -> None:
    clock = ClockDecision(nodes=0, why="Capacity Block cr-1 begins at 2026-12-01T11:30Z")
    found = decide(seen(()), WANTED, Progress(), clock)
    assert found.verdict.state == "ready"
    assert found.verdict.reason == "no nodes, as planned: Capacity Block cr-1 begins at 2026-12-01T11:30Z"
    more = ClockDecision(nodes=2, why="the pilot runs")
    assert decide(seen(()), replace(WANTED, nodes=1), Progress(), more).size == 1


@pytest.mark.parametrize("change", [{"template": "lt-1:2"}, {"subnet": "subnet-2"}])
def test_nodes_of_another_version_or_subnet_are_replaced(change: dict[str, str]) -> None:
    wanted = replace(WANTED, **change)
    first = decide(verified("i-1", "i-2"), wanted, Progress())
    assert (first.size, first.replacement.outdated) == (0, ("i-1", "i-2"))
    assert first.verdict.state == "waiting"
    ending = {i: {"State": {"Name": "shutting-down"}} for i in ("i-1", "i-2")}
    second = decide(seen((), instances=ending), wanted, first.progress)
    assert (second.size, second.replacement.ending) == (None, ("i-1", "i-2"))
    ended = {i: {"State": {"Name": "terminated"}} for i in ("i-1", "i-2")}
    third = decide(seen((), instances=ended), wanted, second.progress)
    assert (third.size, third.replacement.is_over, third.progress.launched) == (2, True, True)


def test_nodes_are_replaced_once_for_any_launched_version() -> None:
    """An app may have overridden the version, for example with $Latest."""
    wanted = replace(WANTED, template="lt-1:2")
    progress = Progress(ended=frozenset({"i-1", "i-2"}), launched=True, sized_to=2)
    found = decide(seen(("i-3", "i-4"), template="lt-1:3"), wanted, progress)
    assert (found.size, found.replacement.is_over) == (None, True)


def test_sleep_terminates_nodes_of_any_version() -> None:
    found = decide(verified("i-1", "i-2"), replace(WANTED, nodes=0, template="lt-1:2"), Progress())
    assert (found.size, found.replacement.is_over) == (0, True)


@pytest.mark.parametrize(
    ("in_rollback", "stack", "reason"),
    [
        (False, ROLLING_BACK, "the deployment is rolled back"),
        (True, UPDATING, "a later deployment manages the nodes"),
    ],
)
def test_superseded_deployment_does_nothing(in_rollback: bool, stack: StackSnapshot, reason: str) -> None:
    found = decide(seen((), desired=0, stack=stack), replace(WANTED, in_rollback=in_rollback), Progress())
    assert (found.superseded, found.size, found.verdict.reason) == (True, None, reason)


def test_rollback_waits_until_the_group_launches_the_former_version() -> None:
    rollback = replace(WANTED, in_rollback=True, after_response=True)
    waiting = decide(seen((), template="lt-1:2", stack=ROLLING_BACK), rollback, Progress())
    assert (waiting.replacement.launches_others, waiting.size) == (True, None)
    launching = decide(seen((), desired=2, stack=ROLLING_BACK), rollback, waiting.progress)
    assert (launching.verdict.state, launching.verdict.reason) == ("ready", "2 former nodes are being launched")


def launch(status: str = "Failed", message: str = "", *, at: datetime = NOON) -> dict[str, Any]:
    activity = {"Description": "Launching a new EC2 instance", "StatusCode": status, "StartTime": at}
    return activity | ({"StatusMessage": message} if message else {})


def test_failed_launches_count_since_the_last_other_launch_and_the_deployment() -> None:
    earlier = launch(message="earlier", at=NOON - timedelta(hours=1))
    cancelled = launch("Cancelled", "the key")
    assert failed_launches([cancelled, earlier], NOON) == ["the key"]
    assert failed_launches([cancelled, earlier], None) == ["the key", "earlier"]
    assert failed_launches([launch("InProgress"), cancelled], None) == []
    assert failed_launches([launch("Cancelled"), cancelled], None) == []


@pytest.mark.parametrize(("minutes", "recent"), [(0, True), (9, True), (10, False)])
def test_terminated_instances_count_for_ten_minutes(minutes: int, recent: bool) -> None:
    ended = {"Description": "Terminating EC2 instance: i-1", "EndTime": NOON}
    assert ended_recently([ended], NOON + timedelta(minutes=minutes)) is recent
    assert ended_recently([{"Description": "Terminating EC2 instance: i-1"}], NOON)


def test_quota_error_fails_only_once_terminated_nodes_no_longer_count() -> None:
    activities = [launch(message=OVER_QUOTA), {"Description": "Terminating EC2 instance: i-9", "EndTime": NOON}]
    early, late = (
        decide(seen(("i-1",), activities=activities, now=NOON + timedelta(minutes=minutes)), WANTED, Progress())
        for minutes in (1, 10)
    )
    assert (early.verdict.state, late.verdict.state) == ("waiting", "failed")


def test_nodes_replaced_before_the_deployment_are_not_named() -> None:
    records = (
        stored("i-8", "failed", "replaced long ago", at=NOON - timedelta(days=2)),
        stored("i-9", "failed", "replaced now", at=NOON),
        stored("i-2", "failed", "no driver"),
    )
    found = decide(seen(("i-1", "i-2"), *records), replace(WANTED, since=NOON), Progress())
    assert found.verdict.reason == "node i-2: no driver; failed before, and replaced: node i-9: replaced now"


@given(
    sized_to=st.none() | st.integers(0, 4),
    ended=st.frozensets(st.sampled_from(["i-1", "i-2"])),
    launched=st.booleans(),
    other_sizes=st.integers(0, 3),
)
def test_progress_survives_the_event_of_the_next_invocation(**values: Any) -> None:
    progress = Progress(**values)
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress


@given(
    desired=st.integers(0, 4),
    instances=st.sampled_from([(), ("i-1",), ("i-1", "i-2")]),
    nodes=st.integers(0, 3),
    clock=st.none() | st.integers(0, 3),
    version=st.sampled_from([TEMPLATE, "lt-1:2"]),
    in_rollback=st.booleans(),
    rolling_back=st.booleans(),
    progress=st.builds(Progress, sized_to=st.none() | st.integers(0, 3), launched=st.booleans()),
)
def test_size_is_never_larger_than_wanted(
    desired: int,
    instances: tuple[str, ...],
    nodes: int,
    clock: int | None,
    version: str,
    in_rollback: bool,
    rolling_back: bool,
    progress: Progress,
) -> None:
    stack = ROLLING_BACK if rolling_back else UPDATING
    decision = None if clock is None else ClockDecision(nodes=clock, why="")
    wanted = replace(WANTED, nodes=nodes, template=version, in_rollback=in_rollback)
    found = decide(seen(instances, desired=desired, stack=stack), wanted, progress, decision)
    most = nodes if clock is None else min(nodes, clock)
    assert found.size is None or 0 <= found.size <= most
    assert found.size != desired
    assert found.superseded == (in_rollback != rolling_back)
    assert not (found.superseded and found.size is not None)
    # Nodes are launched only after all nodes to be replaced are gone.
    assert found.size in (None, 0) or found.replacement.is_over
