"""What the controller does with the nodes of a snapshot."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.runtime.snapshots import NOON, address, members, snapshot, stored
from trainium_runtime.controller.actions import Action, MarkUnhealthy, PrintLine, Step, TagInstances, WriteMembership
from trainium_runtime.controller.nodes import PILOT_STOP, node_steps
from trainium_runtime.controller.snapshot import PilotSnapshot, Snapshot
from trainium_runtime.pilot_clock import ClockDecision, StopNotice
from trainium_wire.membership import Membership, Notice

VERIFIED = (stored("i-1", "verified"), stored("i-2", "verified"))
TAGGED = {"i-1": {"trn:node": "verified", "trn:reason": ""}, "i-2": {"trn:node": "verified", "trn:reason": ""}}
SLEEP = Notice(kind="sleep", at="2026-11-21T13:00:00Z", reason="the cluster goes to sleep")


def actions(steps: Iterable[Step]) -> list[Action]:
    return [action for step in steps for action in step.actions if not isinstance(action, Step)]


def decided(
    seen: Snapshot, *, limit: int = 0, clock: ClockDecision | None = None, event: str | None = None
) -> list[Action]:
    return actions(node_steps(seen, replacements=limit, clock=clock, event_instance=event))


def written(seen: Snapshot, clock: ClockDecision | None = None) -> Membership | None:
    """The membership that is written; None if none is."""
    found = [a.membership for a in decided(seen, clock=clock) if isinstance(a, WriteMembership)]
    return found[0] if found else None


def logged(seen: Snapshot, event: str | None = None) -> list[str]:
    """The instances whose records are logged."""
    found = [action.fields["record"] for action in decided(seen, event=event) if isinstance(action, PrintLine)]
    return [record["instance_id"] for record in found]


def test_nothing_is_done_for_verified_members() -> None:
    assert decided(snapshot(("i-1", "i-2"), *VERIFIED, tags=TAGGED, membership=members("i-1", "i-2"))) == []


def test_membership_is_written_once_every_node_is_verified() -> None:
    assert written(snapshot(("i-1", "i-2"), VERIFIED[0])) is None
    assert written(snapshot(("i-1", "i-2"), *VERIFIED)) == members("i-1", "i-2")
    assert written(snapshot(("i-1", "i-2"), VERIFIED[0], stored("i-2", "draining", "spot"))) == members("i-1", "i-2")


def test_membership_has_the_addresses_of_ec2() -> None:
    """Otherwise a node could write a command as the address in its record, and every other node would run it."""
    forged = stored("i-1", "verified", address="$(reboot)")
    made = written(snapshot(("i-1", "i-2"), forged, VERIFIED[1]))
    assert made is not None
    assert {member.address for member in made.members} == {address("i-1"), address("i-2")}


@pytest.mark.parametrize(
    "seen",
    [
        snapshot(("i-1", "i-2"), *VERIFIED, desired=3),
        snapshot(("i-1", "i-2"), *VERIFIED, leaving=("i-2",)),
        snapshot(("i-1", "i-2"), *VERIFIED, instances={}),
    ],
    ids=["incomplete", "leaving", "unknown to EC2"],
)
def test_incomplete_group_gets_no_membership(seen: Snapshot) -> None:
    assert written(seen) is None


def test_failed_node_within_the_limit_is_replaced() -> None:
    seen = snapshot(("i-1", "i-2"), VERIFIED[0], stored("i-2", "failed", "no driver"))
    marked = [action for action in decided(seen, limit=1) if isinstance(action, MarkUnhealthy)]
    assert marked == [MarkUnhealthy(instance="i-2", why="no driver; being replaced (1 of 1)")]
    assert not [action for action in decided(seen) if isinstance(action, MarkUnhealthy)]


def test_leaving_node_is_not_marked_again() -> None:
    seen = snapshot(("i-1", "i-2"), stored("i-2", "failed", "no driver"), leaving=("i-2",))
    assert not [action for action in decided(seen, limit=2) if isinstance(action, MarkUnhealthy)]


def test_instances_are_tagged_with_their_state_and_reason_last() -> None:
    seen = snapshot(("i-1", "i-2", "i-3"), *VERIFIED, stored("i-3", "failed", "no driver"))
    *_, verified, failed = decided(seen, limit=1)
    assert verified == TagInstances(instances=["i-1", "i-2"], tags={"trn:node": "verified", "trn:reason": ""})
    reason = "no driver; being replaced (1 of 1)"
    assert failed == TagInstances(instances=["i-3"], tags={"trn:node": "failed", "trn:reason": reason})


def test_record_with_a_lost_event_is_logged_once() -> None:
    """For example a record that was written before the EventBridge rule existed."""
    assert logged(snapshot(("i-1", "i-2"), *VERIFIED)) == ["i-1", "i-2"]
    assert logged(snapshot(("i-1", "i-2"), *VERIFIED, tags=TAGGED)) == []


def test_record_of_the_event_is_logged_even_for_a_foreign_instance() -> None:
    seen = snapshot(("i-1", "i-2"), *VERIFIED, stored("i-9", "failed", "gone since"), tags=TAGGED)
    assert logged(seen, event="i-1") == ["i-1"]
    (line,) = [action for action in decided(seen, event="i-9", limit=2) if isinstance(action, PrintLine)]
    assert line.fields["why"] == "the instance is not in the group"


def stopping(nodes: int = 2, *, at: datetime | None = NOON + timedelta(minutes=15)) -> ClockDecision:
    notice = StopNotice(at=at, reason="the pilot ends") if at else None
    return ClockDecision(nodes=nodes, why="", notice=notice)


STOP = Notice(kind=PILOT_STOP, at="2026-11-21T12:15:00Z", reason="the pilot ends")


def test_jobs_are_notified_of_the_stop_once() -> None:
    first = written(snapshot(("i-1", "i-2"), *VERIFIED, membership=members("i-1", "i-2", notices=(SLEEP,))), stopping())
    assert first == members("i-1", "i-2", notices=(STOP, SLEEP))
    assert written(snapshot(("i-1", "i-2"), *VERIFIED, membership=first), stopping()) is None


@pytest.mark.parametrize(
    ("clock", "pilot", "kept"),
    [
        (stopping(at=None), PilotSnapshot(), False),
        (stopping(at=None), PilotSnapshot(memory=None), True),
        (stopping(nodes=0, at=None), PilotSnapshot(), True),
        (None, None, True),
    ],
    ids=["moved end", "unknown memory", "stopped", "event of a node"],
)
def test_only_a_clock_that_knows_withdraws_the_notice(
    clock: ClockDecision | None, pilot: PilotSnapshot | None, kept: bool
) -> None:
    before = members("i-1", "i-2", notices=(STOP, SLEEP))
    seen = snapshot(("i-1", "i-2"), *VERIFIED, membership=before, pilot=pilot)
    assert (written(seen, clock) is None) is kept
    assert kept or written(seen, clock) == members("i-1", "i-2", notices=(SLEEP,))


def test_outdated_notice_is_removed() -> None:
    seen = snapshot(("i-1", "i-2"), *VERIFIED, membership=members("i-1", "i-2", notices=(STOP,)))
    assert written(replace(seen, now=NOON + timedelta(hours=2))) == members("i-1", "i-2")
