"""Decides what to do for the pilot: stop and launch nodes, notify people, and delete the stack.

The decision of the clock (`trainium_runtime.pilot_clock`) says how many nodes there should be, and why.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainium_runtime.controller.actions import Action, DeleteStack, Publish, Remember, Resize, Step
from trainium_runtime.controller.settings import ControllerSettings, PilotOptions
from trainium_runtime.controller.snapshot import PilotSnapshot, Snapshot, StackSnapshot
from trainium_runtime.facts import facts
from trainium_runtime.naming import IDLE_NOTICE_TAG, NOTIFIED_TAG, SPENT_TAG, STOPPED_TAG
from trainium_runtime.pilot_clock import ClockDecision, Memory, clock_decision, warning_mark
from trainium_runtime.pilot_end import utc_text

_LONGEST_SUBJECT = 100  # characters (SNS API reference, Publish)

_EXTEND = (
    "To continue: run trn extend 8h in the folder of cdk.json. After a spent budget, raise trn:budget_usd and deploy."
)
_WAKE = "To continue: run trn wake in the folder of cdk.json, or trn run --wake. Network and file systems still exist."


@dataclass(frozen=True, kw_only=True)
class PilotLook:
    """What a look knows of a pilot.

    Attributes:
        budget_reached: Whether the event is AWS Budgets' message that the budget is spent.
        deploying: Whether a deployment waits for nodes, and sets their number itself.
    """

    settings: ControllerSettings
    pilot: PilotOptions
    snapshot: Snapshot
    stack: StackSnapshot
    state: PilotSnapshot
    budget_reached: bool = False
    deploying: bool = False

    @property
    def memory(self) -> Memory:
        return self.state.memory or Memory()

    def decision(self) -> ClockDecision:
        if self.settings.group and self.snapshot.group is None:
            return ClockDecision(nodes=0, why=f"the Auto Scaling group {self.settings.group} does not exist")
        return clock_decision(
            now=self.snapshot.now,
            terms=self.pilot.terms,
            deployed=self.stack.created,
            block=self.state.block,
            asleep=self.pilot.asleep,
            memory=self.memory,
            budget_reached=self.budget_reached,
            nodes_wanted=self.snapshot.desired > 0,
            idle_since=self.state.idle_since,
            deploying=self.deploying,
        )

    def steps(self, decision: ClockDecision) -> Iterator[Step]:
        """What to do after a decision of the clock."""
        if self.settings.group and self.snapshot.group is None:
            return
        yield from self._stop(decision)
        yield from self._store_spent(decision)
        yield from self._start(decision)
        yield from self._warn(decision)
        yield from self._notify_idle(decision)
        yield from self._notify_nodes_left(decision)
        yield from self._delete(decision)

    def _stop(self, decision: ClockDecision) -> Iterator[Step]:
        if decision.stopped is None or self.snapshot.group is None:
            return
        if self.memory.stopped != decision.stopped:
            yield Step([Remember(tag=STOPPED_TAG, value=str(decision.stopped))])
        # Not for a sleeping cluster: its stack, which may be waking, sets the size.
        if self.snapshot.desired:
            remedy = _WAKE if decision.stopped.kind == "idle" else self._how_to_continue()
            stopped = self._notice("nodes stopped", f"The nodes are being terminated: {decision.why}.", remedy)
            yield Step([Resize(nodes=0), stopped])

    def _store_spent(self, decision: ClockDecision) -> Iterator[Step]:
        if decision.spent == self.memory.spent:
            return
        spent = Remember(tag=SPENT_TAG, value=str(decision.spent) if decision.spent else None)
        # If it is not stored, no later look would stop the nodes.
        is_urgent = decision.spent is not None and self.snapshot.desired > 0
        actions: list[Action | Step] = [Step([spent], lambda _: [Resize(nodes=0)] if is_urgent else [])]
        if decision.spent and decision.notice:
            at = utc_text(decision.notice.at.replace(microsecond=0))
            soon = f"The nodes are terminated at {at}: {decision.notice.reason}. Until then jobs can save their work."
            actions.append(self._notice("nodes stop soon", soon, self._how_to_continue()))
        yield Step(actions)

    def _start(self, decision: ClockDecision) -> Iterator[Step]:
        if not decision.nodes or self.snapshot.group is None:
            return
        actions: list[Action] = []
        was_stopped = self.memory.stopped is not None
        # A deployment itself sets the size.
        is_running = self.snapshot.desired > 0 or self.deploying
        # If a person set the size to 0, it stays 0 until a deployment, except in a Capacity Block, where the clock
        # launches nodes. While an operation on the stack is in progress, the deployment sets the size.
        if not is_running and self.stack.settled and (self.pilot.terms.in_capacity_block or was_stopped):
            started = f"{decision.nodes} nodes are being launched: {decision.why}."
            actions += [Resize(nodes=decision.nodes), self._notice("nodes started", started)]
            is_running = True
        if is_running and was_stopped:
            actions.append(Remember(tag=STOPPED_TAG, value=None))
        if actions:
            yield Step(actions)

    def _warn(self, decision: ClockDecision) -> Iterator[Step]:
        if (ends := decision.warn_of) is None:
            return
        destroys = self.pilot.terms.destroys
        after = "the stack is deleted" if destroys else "the nodes are terminated; everything else is kept"
        left = _time_left(ends - self.snapshot.now)
        ending = f"The pilot ends at {utc_text(ends)}, in {left}. Then {after}."
        yield Step(self._notice_once(warning_mark(ends), f"ends in {left}", ending, _EXTEND))

    def _notify_idle(self, decision: ClockDecision) -> Iterator[Step]:
        """Notify only people: unused nodes have no job that could act on a notice."""
        if decision.idle and self.state.memory:
            soon = f"The nodes are terminated at {utc_text(decision.idle.at)}: {decision.idle.reason}."
            use = "They keep running while a job of trn run, or any process that uses a Neuron device, is running."
            # In another tag than notices about the end.
            stored = Remember(tag=IDLE_NOTICE_TAG, value=utc_text(decision.idle.at))
            yield Step([self._notice("is idle", soon, use), stored])

    def _notify_nodes_left(self, decision: ClockDecision) -> Iterator[Step]:
        """Warn of instances that Auto Scaling has not terminated long after the end.

        They may be in standby or protected from scale-in, or the process Terminate may be suspended.
        """
        left = self.snapshot.nodes_left
        if decision.ended and not decision.delete and left and self.snapshot.now >= _nodes_deadline(decision.ended):
            yield Step(
                self._notice_once(
                    f"nodes left: {decision.stopped}",
                    "nodes are left",
                    f"{left} nodes still exist, and may be billed: {decision.why}.",
                    "Check in the Auto Scaling group whether they are in standby or protected from scale-in, or "
                    "whether its process Terminate is suspended.",
                )
            )

    def _delete(self, decision: ClockDecision) -> Iterator[Step]:
        if not self._is_deletable(decision):
            return
        # Notices before the deletion, which removes the subscriptions of the topic early.
        if self.stack.status == "DELETE_FAILED":
            yield Step(self._deletion_failed(decision, self.stack.reason or "no reason reported"))
        elif self.memory.notified != _not_deleted(decision):
            # The deletion also deletes what could send another notice.
            yield Step(
                self._notice_once(
                    f"deleting: {decision.stopped}",
                    "is being deleted",
                    f"The stack is being deleted: {decision.why}.",
                    "You may get no message if the deletion fails, for example because a bucket is not empty: verify "
                    "with `trn audit` that nothing is left.",
                )
            )
        yield Step([DeleteStack()], lambda reason: self._deletion_failed(decision, reason))

    def _is_deletable(self, decision: ClockDecision) -> bool:
        """Whether to delete the stack now: once no nodes are left, because a placement group in use cannot be deleted,
        or once the time for their termination is over."""
        if not decision.delete or decision.ended is None or not self.stack.settled:
            return False
        has_nodes = self.snapshot.nodes_left or self.snapshot.desired
        return not has_nodes or self.snapshot.now >= _nodes_deadline(decision.ended)

    def _deletion_failed(self, decision: ClockDecision, reason: str) -> Sequence[Action]:
        minutes = facts()["pilot"]["minutes_between_runs"]
        return self._notice_once(
            _not_deleted(decision),
            "could not be deleted",
            f"The stack still exists, and its resources may be billed: {reason}",
            f"The deletion is retried every {minutes} minutes without another message. Run `trn destroy` for details.",
        )

    def _notice(self, subject: str, *sentences: str) -> Publish:
        settings = self.settings
        footer = f"Cluster {settings.cluster}, stack {settings.stack_id}"
        return Publish(
            subject=f"{settings.cluster} {subject}"[:_LONGEST_SUBJECT], message="\n".join([*sentences, "", footer])
        )

    def _notice_once(self, event: str, subject: str, *sentences: str) -> Sequence[Action]:
        """A notice, unless the last one about the end was for the same event, or it is unknown which one was the last.

        Args:
            event: Identifies the event.
        """
        if self.state.memory is None or self.memory.notified == event:
            return []
        return [self._notice(subject, *sentences), Remember(tag=NOTIFIED_TAG, value=event)]

    def _how_to_continue(self) -> str:
        return "" if self.pilot.terms.in_capacity_block else _EXTEND


def _not_deleted(decision: ClockDecision) -> str:
    """The stored mark that people were notified that the stack of an ended pilot still exists."""
    return f"not deleted: {decision.stopped}"


def _nodes_deadline(ended: datetime) -> datetime:
    """When the time for the termination of an ended pilot's nodes is over."""
    return ended + timedelta(minutes=facts()["pilot"]["minutes_for_nodes_to_go"])


def _time_left(left: timedelta) -> str:
    """The time left, for people: in whole hours, or in whole minutes below two hours."""
    minutes = max(0, left // timedelta(minutes=1))
    return f"{minutes // 60} h" if minutes >= 2 * 60 else f"{minutes} min"
