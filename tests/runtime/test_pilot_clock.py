"""The decisions of a pilot's clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core import builtin_catalog
from trainium_core.facts import facts
from trainium_runtime.pilot_clock import (
    CapacityBlock,
    ClockDecision,
    Memory,
    PilotTerms,
    SpentBudget,
    StopKind,
    StopNotice,
    Stopped,
    clock_decision,
    stops_before_block_end,
    warning_mark,
    warning_time,
)
from trainium_runtime.pilot_end import Deadline

DEPLOYED = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BLOCK = CapacityBlock(
    block_id="cr-1",
    instance_type="trn2.48xlarge",
    begins=DEPLOYED + timedelta(hours=10),
    ends=DEPLOYED + timedelta(hours=34),
    state="active",
)


def terms(hours: float | None = None, **settings: Any) -> PilotTerms:
    return PilotTerms(nodes=2, ends=Deadline(after=timedelta(hours=hours)) if hours else None, **settings)


def decision(after: float, of: PilotTerms, **inputs: Any) -> ClockDecision:
    all_inputs: dict[str, Any] = {"block": None, "asleep": False, "memory": Memory(), **inputs}
    return clock_decision(now=DEPLOYED + timedelta(hours=after), terms=of, deployed=DEPLOYED, **all_inputs)


@pytest.mark.parametrize(("after", "nodes"), [(0, 2), (99.99, 2), (100, 0), (101, 0), (5000, 0)])
def test_nodes_run_until_the_end_and_not_after(after: float, nodes: int) -> None:
    assert decision(after, terms(100)).nodes == nodes


@pytest.mark.parametrize(
    ("hours", "warning", "at"),
    [(100, 24, 76), (48, 24, 24), (40, 24, 20), (1, 24, 0.5), (200, 100, 100), (200, 12, 188)],
)
def test_end_is_warned_of_in_time_but_not_before_half_of_the_pilot(hours: float, warning: float, at: float) -> None:
    of = terms(hours, warning=timedelta(hours=warning))
    assert warning_time(of, DEPLOYED) == DEPLOYED + timedelta(hours=at)


def test_end_is_warned_of_once() -> None:
    end = DEPLOYED + timedelta(hours=100)
    assert decision(75, terms(100)).warn_of is None
    assert decision(76, terms(100)).warn_of == end
    assert decision(77, terms(100), memory=Memory(notified=warning_mark(end))).warn_of is None
    assert decision(100, terms(100)).warn_of is None


@pytest.mark.parametrize("asleep", [False, True])
def test_sleeping_cluster_is_warned_of_its_end(asleep: bool) -> None:
    assert decision(90, terms(100), asleep=asleep).warn_of


@pytest.mark.parametrize(("after", "nodes"), [(0, 0), (9.99, 0), (10, 2), (33.24, 2), (33.25, 0), (34, 0), (99, 0)])
def test_nodes_run_from_start_of_block_until_before_its_end(after: float, nodes: int) -> None:
    assert decision(after, terms(in_capacity_block=True), block=BLOCK).nodes == nodes


@pytest.mark.parametrize(("instance_type", "minutes"), [("trn2.48xlarge", 30), ("trn2u.48xlarge", 60)])
def test_nodes_stop_before_ec2_terminates_the_block(instance_type: str, minutes: int) -> None:
    late = timedelta(minutes=facts()["pilot"]["minutes_between_runs"])
    assert stops_before_block_end(instance_type) - late > timedelta(minutes=minutes)


def test_ultraserver_types_are_those_of_the_catalogue() -> None:
    ultraserver_types = [kind.name for kind in builtin_catalog().values() if kind.instances_per_ultraserver > 1]
    assert facts()["capacity_blocks"]["ultraserver_types"] == ultraserver_types


def test_ultraserver_nodes_stop_75_minutes_before_end_of_block() -> None:
    block = replace(BLOCK, instance_type="trn2u.48xlarge")
    found = [decision(after, terms(in_capacity_block=True), block=block).nodes for after in (32.7, 32.8)]
    assert found == [2, 0]


@pytest.mark.parametrize("state", ["scheduled", "delayed"])
def test_inactive_block_is_waited_for(state: str) -> None:
    late = replace(BLOCK, state=state)
    found = decision(11, terms(in_capacity_block=True), block=late)
    assert found.nodes == 0
    assert state in found.why


def test_block_that_does_not_exist_has_no_nodes() -> None:
    found = decision(11, terms(in_capacity_block=True), block=None)
    assert (found.nodes, found.why) == (0, "the Capacity Block does not exist in EC2")


@pytest.mark.parametrize(("after", "notified"), [(99.74, False), (99.75, True), (99.99, True), (100, False)])
def test_jobs_are_notified_15_minutes_before_the_end(after: float, notified: bool) -> None:
    assert (decision(after, terms(100)).notice is not None) is notified


def test_jobs_are_notified_before_ec2_warns_of_block_end() -> None:
    found = decision(33, terms(in_capacity_block=True), block=BLOCK).notice
    assert found is not None
    assert found.at == BLOCK.ends - timedelta(minutes=45)
    assert decision(32.99, terms(in_capacity_block=True), block=BLOCK).notice is None


def test_spent_budget_notifies_first_and_then_stops_nodes() -> None:
    early = timedelta(minutes=facts()["pilot"]["minutes_of_notice"])
    first = decision(1, terms(budget_usd=500), budget_reached=True)
    assert first.nodes == 2
    assert first.notice == StopNotice(at=DEPLOYED + timedelta(hours=1) + early, reason="the budget of $500 is spent")
    later = decision(1.2, terms(budget_usd=500), memory=Memory(spent=first.spent))
    assert (later.nodes, later.notice) == (2, first.notice)
    stopped = decision(1.25, terms(budget_usd=500), memory=Memory(spent=first.spent))
    assert (stopped.nodes, stopped.why, stopped.spent) == (0, "the budget of $500 is spent", first.spent)


def test_spent_budget_is_stored_until_it_is_raised() -> None:
    memory = Memory(stopped=Stopped("budget", "500"), spent=SpentBudget(usd=500, since=DEPLOYED + timedelta(hours=1)))
    assert decision(2, terms(budget_usd=500), memory=memory).nodes == 0
    raised = decision(2, terms(budget_usd=600), memory=memory)
    assert (raised.nodes, raised.spent) == (2, None)


def test_no_nodes_are_launched_during_a_notice() -> None:
    assert decision(1, terms(budget_usd=500), budget_reached=True, nodes_wanted=False).nodes == 0


def test_end_during_notice_of_spent_budget_is_kept() -> None:
    found = decision(99.9, terms(100, budget_usd=500), budget_reached=True).notice
    assert found is not None
    assert found.at == DEPLOYED + timedelta(hours=100)


@given(spent=st.builds(SpentBudget, usd=st.integers(1), since=st.datetimes(timezones=st.just(UTC))))
def test_stored_spent_budget_is_read_unchanged(spent: SpentBudget) -> None:
    assert SpentBudget.from_text(str(spent)) == spent


inputs_of_clock = st.fixed_dictionaries(
    {
        "block": st.sampled_from([None, BLOCK]),
        "asleep": st.booleans(),
        "budget_reached": st.booleans(),
        "nodes_wanted": st.booleans(),
        "memory": st.builds(
            Memory,
            notified=st.sampled_from([None, "warned of 2026-11-25T16:00Z"]),
            stopped=st.none() | st.builds(Stopped, st.sampled_from(get_args(StopKind)), st.sampled_from(["", "500"])),
            spent=st.sampled_from([None, *(SpentBudget(usd=usd, since=DEPLOYED) for usd in (400, 500))]),
        ),
    }
)


@given(
    after=st.floats(0, 400),
    hours=st.none() | st.integers(1, 300),
    destroys=st.booleans(),
    budget=st.sampled_from([None, 500]),
    in_block=st.booleans(),
    inputs=inputs_of_clock,
)
def test_decision_is_valid_for_every_combination_of_inputs(
    after: float, hours: int | None, destroys: bool, budget: int | None, in_block: bool, inputs: dict[str, Any]
) -> None:
    of = terms(hours, destroys=destroys, budget_usd=budget, in_capacity_block=in_block)
    found = decision(after, of, **inputs)
    start = 10 if inputs["block"] else 0
    ended = hours is not None and after >= start + hours
    assert found.nodes in (0, 2)
    assert not (ended and found.nodes)
    assert found.delete == (ended and destroys)
    assert (found.ended is not None) == ended
    assert found.notice is None or found.nodes
    assert not (found.delete and found.nodes)
    # The reason is stored, except for a sleep, which the stack itself controls.
    assert (found.stopped is not None) == (found.nodes == 0 and found.why != "the cluster is asleep")
    assert decision(after, of, **inputs) == found


@given(
    begins=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),
    hours=st.integers(1, 24 * 366),
    left=st.floats(1e-3, 24 * 366),
)
def test_pilot_never_ends_before_its_duration_after_the_start_of_the_block(
    begins: datetime, hours: int, left: float
) -> None:
    block = replace(BLOCK, begins=begins, ends=begins + timedelta(hours=24))
    of = terms(hours, destroys=True, in_capacity_block=True)
    end = max(DEPLOYED, begins) + timedelta(hours=hours)
    before = decision((end - DEPLOYED) / timedelta(hours=1) - left, of, block=block)
    assert (before.ended, before.delete) == (None, False)
    assert before.warn_of in (None, end)
    at_end = decision((end - DEPLOYED) / timedelta(hours=1) + 1e-3, of, block=block)
    assert (at_end.ended, at_end.delete) == (end, True)


def idle(after: float, since: float | None, **inputs: Any) -> ClockDecision:
    """The decision for a plan whose unused nodes stop after two hours.

    Args:
        after: The time of the decision, in hours after the deployment.
        since: The hour after the deployment since which the nodes are unused; None if they are in use or unknown.
    """
    start = None if since is None else DEPLOYED + timedelta(hours=since)
    return decision(after, terms(idle=timedelta(hours=2)), idle_since=start, **inputs)


@pytest.mark.parametrize(
    ("after", "since", "nodes"),
    [(10, None, 2), (10, 9, 2), (10, 8.01, 2), (10, 8, 0), (10, 1, 0)],
    ids=["unknown or used", "for an hour", "nearly", "for two hours", "for long"],
)
def test_unused_nodes_stop_after_the_limit(after: float, since: float | None, nodes: int) -> None:
    found = idle(after, since)
    assert found.nodes == nodes
    assert (found.stopped is None) == (nodes > 0)


def test_people_are_notified_once_before_idle_nodes_stop() -> None:
    assert idle(9.7, 8).idle is None
    notice = StopNotice(
        at=DEPLOYED + timedelta(hours=10),
        reason="no job and no NeuronCore has been in use since 2026-11-21T20:00Z",
    )
    assert idle(9.8, 8).idle == notice
    assert idle(9.9, 8.01, memory=Memory(idle=notice.at)).idle is None
    assert idle(11.9, 10, memory=Memory(idle=notice.at)).idle is not None


def test_idle_nodes_return_only_by_wake_or_deployment() -> None:
    stopped = Memory(stopped=idle(10, 8).stopped)
    later = idle(20, None, memory=stopped, nodes_wanted=False)
    assert (later.nodes, later.stopped) == (0, stopped.stopped)
    assert idle(20, None, memory=stopped, nodes_wanted=True).nodes == 2
    assert idle(20, 8, memory=stopped, nodes_wanted=False, deploying=True).nodes == 2


@given(st.builds(Stopped, st.sampled_from(get_args(StopKind)), st.sampled_from(["", "500", "2026-11-25T16:00Z"])))
def test_stored_reason_is_read_unchanged(stopped: Stopped) -> None:
    assert Stopped.from_text(str(stopped)) == stopped
