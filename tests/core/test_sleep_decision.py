"""The decisions of `trn sleep` and `trn wake`, by the state of a stack."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.sleep.decision import ObservedStack, SleepChange, Want, decide
from trainium_core.sleep.state import SleepState
from trainium_core.stacks.deployed_stack import STABLE_STATUSES

NOW = datetime(2026, 11, 24, tzinfo=UTC)
AWAKE = SleepState(status="UPDATE_COMPLETE", asleep=False, cluster="pilot", groups=("nodes",))
ASLEEP = replace(AWAKE, asleep=True)
WITHOUT_SWITCH = replace(AWAKE, asleep=None)
STUCK = "UPDATE_ROLLBACK_FAILED"


def decided(want: Want, state: SleepState, *, nodes: bool = True, **more: object) -> SleepChange:
    observed = ObservedStack(
        stack="Stack",
        state=state,
        has_nodes=nodes,
        wants_nodes=nodes,
        cluster="pilot",
        has_schedule=False,
        ends=None,
        now=NOW,
    )
    return decide(replace(observed, **more), want)


@pytest.mark.parametrize(
    ("state", "nodes", "action"),
    [
        (AWAKE, True, "update stack"),
        (ASLEEP, False, "nothing"),
        (ASLEEP, True, "terminate nodes"),
        (WITHOUT_SWITCH, True, "terminate nodes"),
        (WITHOUT_SWITCH, False, "nothing"),
        (replace(AWAKE, status=STUCK), True, "terminate nodes"),
        (replace(AWAKE, status=STUCK), False, "refuse"),
        (replace(AWAKE, cluster="other"), True, "refuse"),
    ],
)
def test_sleep_action_follows_from_the_stack(state: SleepState, nodes: bool, action: str) -> None:
    assert decided("asleep", state, nodes=nodes).action == action


@pytest.mark.parametrize(
    ("state", "nodes", "has_schedule", "action"),
    [
        (ASLEEP, False, False, "update stack"),
        (AWAKE, True, False, "nothing"),
        (AWAKE, False, False, "launch nodes"),
        (AWAKE, False, True, "refuse"),
        (WITHOUT_SWITCH, False, False, "launch nodes"),
        (replace(ASLEEP, status=STUCK), False, False, "refuse"),
        (replace(AWAKE, status=STUCK), False, False, "launch nodes"),
        (replace(ASLEEP, cluster=None), False, False, "refuse"),
    ],
)
def test_wake_action_follows_from_the_stack(state: SleepState, nodes: bool, has_schedule: bool, action: str) -> None:
    assert decided("awake", state, nodes=nodes, has_schedule=has_schedule).action == action


@given(
    state=st.builds(
        SleepState,
        status=st.sampled_from([*STABLE_STATUSES, STUCK, "UPDATE_IN_PROGRESS"]),
        asleep=st.sampled_from([None, True, False]),
        cluster=st.sampled_from([None, "pilot", "other"]),
        groups=st.sampled_from([(), ("nodes",)]),
    ),
    nodes=st.booleans(),
    has_schedule=st.booleans(),
    want=st.sampled_from(["asleep", "awake"]),
)
def test_every_decision_is_safe(state: SleepState, nodes: bool, has_schedule: bool, want: Want) -> None:
    nodes = nodes and bool(state.groups)
    switch = decided(want, state, nodes=nodes, has_schedule=has_schedule)
    assert bool(switch.message) == (switch.action in ("refuse", "nothing"))
    if switch.action == "update stack":
        assert (state.status in STABLE_STATUSES, state.asleep) == (True, want != "asleep")
    if switch.action in ("launch nodes", "terminate nodes"):
        assert state.groups
        assert (switch.action == "terminate nodes") == (want == "asleep") == nodes
    if state.cluster != "pilot":
        assert switch.action == "refuse"
    if want == "asleep" and not (nodes or state.asleep) and state.groups and state.status == "UPDATE_IN_PROGRESS":
        assert switch.action == "refuse"
    if want == "asleep" and nodes and state.cluster == "pilot":
        assert switch.action in ("update stack", "terminate nodes")


@pytest.mark.parametrize("state", [AWAKE, WITHOUT_SWITCH])
def test_sleep_while_a_deployment_replaces_nodes_is_refused(state: SleepState) -> None:
    """The old nodes are shutting down, and the deployment would launch the new nodes anyway."""
    replacing = replace(state, status="UPDATE_IN_PROGRESS")
    refused = decided("asleep", replacing, nodes=True, wants_nodes=False)
    assert refused.action == "refuse"
    assert "cancel-update-stack --stack-name Stack" in refused.message


@pytest.mark.parametrize("state", [ASLEEP, AWAKE, WITHOUT_SWITCH])
def test_wake_after_the_end_of_the_pilot_is_refused(state: SleepState) -> None:
    refused = decided("awake", state, nodes=False, ends=NOW)
    assert refused.action == "refuse"
    assert "trn extend 8h" in refused.message
    assert decided("awake", state, nodes=False, ends=NOW + timedelta(hours=1)).action != "refuse"
