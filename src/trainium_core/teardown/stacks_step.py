"""The step that deletes the stacks, and tries again what CloudFormation could not delete."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from trainium_core.stacks.description import StackDescription, StackProgress, Stacks
from trainium_core.teardown.scope import Scope
from trainium_core.teardown.step import Progress, Step, count
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_ATTEMPTS = 3
_FAILED, _BUSY, _NOT_BUSY = "DELETE_FAILED", "_IN_PROGRESS", "REVIEW_IN_PROGRESS"


@dataclass
class DeleteStacks:
    """Deletes all stacks at once; they do not depend on each other. Those that are not only the cluster's stay.

    clearing: steps to take again before another attempt, since what they clear away is what mostly stands in the way.
    """

    account: Stacks
    scope: Scope
    clearing: Sequence[Step]
    name: str = "stacks"
    attempts: Counter[str] = field(default_factory=Counter[str], init=False)

    def advance(self) -> Progress:
        steps = [self._advance(stack) for stack in self.scope.going]
        for state in ("working", "waiting", "stuck"):
            messages = [step.message for step in steps if step.state == state]
            if messages:
                return Progress(state=state, message="; ".join(messages))
        return Progress(state="done", message=", ".join(step.message for step in steps) or "none is there")

    def _advance(self, stack: StackDescription) -> Progress:
        now = self.account.stack_progress(stack.stack_id)
        if now.status == "DELETE_COMPLETE":
            return Progress(state="done", message=f"{stack.name} is gone")
        if now.status == "DELETE_IN_PROGRESS":
            return Progress(state="waiting", message=f"{stack.name}: {count(now.left, 'resource')} left")
        if self.attempts[stack.stack_id] == _ATTEMPTS:
            return Progress(state="stuck", message=_reasons(stack, now))
        return self._order(stack, now)

    def _order(self, stack: StackDescription, now: StackProgress) -> Progress:
        if now.status == _FAILED:
            self._clear()
        try:
            self.account.delete_stack(stack.stack_id)
        except RequestRefusedError as error:
            if not now.status.endswith(_BUSY) or now.status == _NOT_BUSY:
                raise
            return Progress(
                state="waiting", message=f"{stack.name} is in {now.status}, and cannot be deleted yet: {error}"
            )
        self.attempts[stack.stack_id] += 1
        if now.status == _FAILED:
            return Progress(state="waiting", message=f"{_reasons(stack, now)}; trying again")
        return Progress(state="waiting", message=f"{stack.name}: {count(now.left, 'resource')} left")

    def _clear(self) -> None:
        for step in self.clearing:
            # What cannot be cleared away keeps no stack from another attempt, whose error names what is in its way.
            with suppress(UnavailableError, RequestRefusedError):
                while step.advance().state == "working":
                    pass


def _reasons(stack: StackDescription, now: StackProgress) -> str:
    reasons = "; ".join(now.failures) or "CloudFormation gives no reason"
    return f"{stack.name} could not be deleted: {reasons}"
