"""Decides what `trn sleep` and `trn wake` do with a stack: one pure function of the observed state."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from trainium_core.plan.pilot_end import minute_text
from trainium_core.sleep.state import SleepState
from trainium_core.stacks.deployed_stack import STABLE_STATUSES

Want = Literal["asleep", "awake"]

Action = Literal["refuse", "nothing", "launch nodes", "terminate nodes", "update stack"]
"""`launch nodes` and `terminate nodes` change only the Auto Scaling groups; `update stack` changes `Asleep`."""

_END_COMMANDS = {
    "CREATE_IN_PROGRESS": "trn destroy",
    "UPDATE_IN_PROGRESS": "aws cloudformation cancel-update-stack --stack-name {}",
}
"""The command that ends an operation that may still launch nodes, by the status of the stack."""


@dataclass(frozen=True, kw_only=True)
class ObservedStack:
    """A stack before it is switched.

    Attributes:
        stack: Name of the stack.
        state: Sleep state of the stack.
        has_nodes: Whether a group of the nodes has instances, or a desired size above 0.
        wants_nodes: Whether a group of the nodes has a desired size above 0.
        cluster: The cluster in the plan.
        has_schedule: Whether the controller launches the nodes at the start of their Capacity Block.
        ends: End of the pilot, if known.
        now: Time of the decision.
    """

    stack: str
    state: SleepState
    has_nodes: bool
    wants_nodes: bool
    cluster: str
    has_schedule: bool
    ends: datetime | None
    now: datetime


@dataclass(frozen=True, kw_only=True)
class SleepChange:
    """The decision.

    Attributes:
        action: What to do.
        message: Why nothing is switched; otherwise empty.
    """

    action: Action
    message: str = ""


def decide(observed: ObservedStack, want: Want) -> SleepChange:
    """Decide how the stack reaches the wanted state."""
    return _sleep(observed) if want == "asleep" else _wake(observed)


def _sleep(observed: ObservedStack) -> SleepChange:
    state, cluster = observed.state, observed.cluster
    if not _is_own_cluster(observed):
        return _other_cluster_problem(observed)
    if state.groups and not (observed.wants_nodes or state.asleep) and state.status in _END_COMMANDS:
        # The deployment keeps the size at 0 while it replaces nodes, and before it launches the first nodes. It would
        # not notice that `trn sleep` set the size to 0 too.
        return _refuse(
            f"{observed.stack} is in {state.status}, and may launch nodes later: wait until the deployment has ended, "
            f"or end it with `{_END_COMMANDS[state.status].format(observed.stack)}`."
        )
    if not observed.has_nodes:
        if state.asleep is None and state.groups:
            return _nothing(f"{cluster} already has no nodes.")
        obstacle = _obstacle(observed)
        if obstacle:
            return obstacle
        if state.asleep:
            return _nothing(f"{cluster} is already asleep.")
        return SleepChange(action="update stack")
    if state.asleep is False and state.status in STABLE_STATUSES:
        return SleepChange(action="update stack")
    return SleepChange(action="terminate nodes")


def _wake(observed: ObservedStack) -> SleepChange:
    state, cluster = observed.state, observed.cluster
    if not _is_own_cluster(observed):
        return _other_cluster_problem(observed)
    # An awake stack can lose its nodes, for example if its controller stops idle nodes.
    lost = state.asleep is False and not observed.has_nodes and not observed.has_schedule
    if state.groups and (state.asleep is None or lost):
        if observed.has_nodes:
            return _nothing(f"{cluster} already has its nodes.")
        return _after_the_end(observed) or SleepChange(action="launch nodes")
    obstacle = _obstacle(observed)
    if obstacle:
        return obstacle
    if state.asleep:
        return _after_the_end(observed) or SleepChange(action="update stack")
    if state.groups and not observed.has_nodes:
        return _refuse(f"{cluster} is awake: its nodes launch when its Capacity Block starts.")
    return _nothing(f"{cluster} is already awake.")


def _is_own_cluster(observed: ObservedStack) -> bool:
    return observed.state.cluster == observed.cluster


def _other_cluster_problem(observed: ObservedStack) -> SleepChange:
    owner = observed.state.cluster
    if owner is None:
        return _refuse(f"The stack {observed.stack} does not belong to {observed.cluster}: it has no record.")
    return _refuse(f"The stack {observed.stack} belongs to {owner}, not to {observed.cluster}.")


def _obstacle(observed: ObservedStack) -> SleepChange | None:
    state, stack = observed.state, observed.stack
    if state.asleep is None:
        return _refuse(f"{stack} has no nodes that can sleep. `trn destroy` deletes the stack.")
    if state.status not in STABLE_STATUSES:
        return _refuse(f"{stack} is in {state.status}: wait until the operation has ended, or see `trn preflight`.")
    return None


def _after_the_end(observed: ObservedStack) -> SleepChange | None:
    if observed.ends is None or observed.ends > observed.now:
        return None
    ended = minute_text(observed.ends)
    return _refuse(f"The pilot ended at {ended}. Run `trn extend 8h` first, then `trn wake`.")


def _refuse(message: str) -> SleepChange:
    return SleepChange(action="refuse", message=message)


def _nothing(message: str) -> SleepChange:
    return SleepChange(action="nothing", message=message)
