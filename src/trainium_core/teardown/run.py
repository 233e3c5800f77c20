"""Runs the steps of a teardown in order, each until it is done or stuck, or its requests keep failing."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from trainium_core.plurals import count
from trainium_core.polling import SHORTEST_PAUSE, Polling
from trainium_core.stacks.description import StackDescription
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.notice import DEFAULT_GRACE, NotifyNodes, utc_now
from trainium_core.teardown.scope import Scope
from trainium_core.teardown.steps import (
    LEFTOVER_KINDS,
    DeleteLeftovers,
    DeleteStacks,
    EmptyBuckets,
    EmptyGroups,
    OutlivingNodes,
    StepProgress,
    StopWorkloads,
    TeardownStep,
)
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_LIFT = "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name"

_HOW_TO_CONTINUE = (
    "remove the cluster from its app and deploy the app, or run `trn destroy --whole-stacks` to delete the whole stack"
)
_SHOWN = 4
"""The number of resource types that are named."""

OnProgress = Callable[[str, StepProgress], None]
Pause = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """The result of a step.

    Attributes:
        step: Name of the step.
        state: `unknown` if requests failed or were denied, `not tried` if a stack may be left.
        message: Details for people.
        counts: Whether the result affects the verdict; False for the notice to the nodes, and for preparations whose
            result the deletion of the stacks includes.
    """

    step: str
    state: Literal["done", "stuck", "unknown", "not tried"]
    message: str
    counts: bool = True


def take_down(
    account: AwsTeardown,
    scope: Scope,
    *,
    on_progress: OnProgress,
    pause: Pause,
    has_job: Callable[[], bool | None],
    grace: timedelta = DEFAULT_GRACE,
    now: Callable[[], datetime] = utc_now,
    when_interrupted: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> tuple[StepOutcome, ...]:
    """Destroy the cluster of a scope. Each step reads before it changes, so the teardown can be repeated.

    If a stack has termination protection, nothing is changed. If it is unknown whether workloads have ended that need
    their stack, nothing is deleted.

    Args:
        account: The account.
        scope: The stacks of the cluster.
        on_progress: Called with the name of the step and its progress, after every poll.
        pause: Waits for a number of seconds.
        has_job: Returns whether a job of `trn run` uses the nodes; None if this is unknown.
        grace: Time between the notice to running nodes and their termination; 0 to send no notice.
        now: Returns the current time.
        when_interrupted: Returns the context in which the notice is withdrawn after Ctrl-C.

    Returns:
        The results of the steps.
    """
    if scope.protected:
        return tuple(_protected(name) for name in scope.protected)

    def run(step: TeardownStep) -> StepOutcome:
        return run_step(step, on_progress, pause)

    # An unattached interface blocks the deletion of its subnet.
    clearing: list[TeardownStep] = [EmptyBuckets(account, scope), DeleteLeftovers(account, scope, "network interface")]
    reason = f"the cluster {scope.cluster} is being destroyed"
    stack, groups = scope.node_stack, scope.groups
    notice = NotifyNodes(account, stack, groups, kind="destroy", reason=reason, grace=grace, has_job=has_job, now=now)
    preparations = [run(StopWorkloads(account, scope))]
    if preparations[0].state != "done" and scope.workloads_need_stacks:
        message = "nothing was deleted: jobs that may still run need their stack"
        return (*preparations, StepOutcome(step=DeleteStacks.name, state="not tried", message=message))
    try:
        reported = _not_counted(run(notice))
    except KeyboardInterrupt:
        with when_interrupted():
            notice.withdraw()
        raise
    preparations += [run(step) for step in (EmptyGroups(account, scope.groups), *clearing)]
    stacks = run(DeleteStacks(account, scope, clearing))
    staying = tuple(_shared_stack(stack) for stack in scope.shared)
    gone = stacks.state == "done" and not staying
    if gone:
        # With the stacks, CloudFormation has terminated the nodes and deleted the buckets. It ends neither the nodes of
        # retained groups nor jobs that run outside the stacks.
        named = ((StopWorkloads.name, scope.has_outliving_workloads), (EmptyGroups.name, scope.retained_groups))
        counting = [name for name, counts in named if counts]
        preparations = [outcome if outcome.step in counting else _not_counted(outcome) for outcome in preparations]
    after: list[TeardownStep] = [EmptyBuckets(account, scope, also_delete=True)]
    after += [DeleteLeftovers(account, scope, kind) for kind in LEFTOVER_KINDS]
    rest = [run(step) if gone else _not_tried(step) for step in after]
    return (reported, *preparations, stacks, *staying, *rest, *outliving_nodes(account, scope, pause))


def outliving_nodes(account: AwsTeardown, scope: Scope, pause: Pause) -> tuple[StepOutcome, ...]:
    """The outcome for nodes that no step ends; none if there are no such nodes."""

    def show_nothing(_step: str, _progress: StepProgress) -> None:
        """Its outcome is shown at the end."""

    outcome = run_step(OutlivingNodes(account, scope), show_nothing, pause)
    return () if outcome.state == "done" else (outcome,)


def verdict(outcomes: Sequence[StepOutcome]) -> Literal["gone", "left", "unknown"]:
    """Whether anything of the cluster is left.

    Returns:
        `left` if a step is stuck; `unknown` if requests failed or a step was not tried; otherwise `gone`.
    """
    states = {outcome.state for outcome in outcomes if outcome.counts}
    if states & {"stuck", "not tried"}:
        return "left" if "stuck" in states else "unknown"
    return "unknown" if "unknown" in states else "gone"


def run_step(step: TeardownStep, on_progress: OnProgress, pause: Pause) -> StepOutcome:
    """Repeat a step until it is done or stuck, AWS refuses a change, or reading fails several times in a row."""
    polling = Polling(pause, shortest=SHORTEST_PAUSE)
    while True:
        progress = StepProgress(state="waiting", message="no answer")
        try:
            with polling.poll(lambda message: on_progress(step.name, StepProgress(state="waiting", message=message))):
                progress = step.advance()
                on_progress(step.name, progress)
        except RequestRefusedError as error:
            on_progress(step.name, StepProgress(state="stuck", message=str(error)))
            return StepOutcome(step=step.name, state="stuck", message=str(error))
        except UnavailableError as error:
            on_progress(step.name, StepProgress(state="stuck", message=str(error)))
            return StepOutcome(step=step.name, state="unknown", message=str(error))
        if progress.state == "done" or progress.state == "stuck":
            return StepOutcome(step=step.name, state=progress.state, message=progress.message)
        if progress.state == "waiting":
            polling.wait()


def _not_counted(outcome: StepOutcome) -> StepOutcome:
    return StepOutcome(step=outcome.step, state=outcome.state, message=outcome.message, counts=False)


def _protected(stack: str) -> StepOutcome:
    message = f"{stack} has termination protection, so nothing was deleted; to disable it, run: {_LIFT} {stack}"
    return StepOutcome(step="stacks", state="stuck", message=message)


def _shared_stack(stack: StackDescription) -> StepOutcome:
    return StepOutcome(
        step="stacks", state="stuck", message=f"{stack.name} stays: {others_sentence(stack)}; {_HOW_TO_CONTINUE}"
    )


def others_sentence(stack: StackDescription) -> str:
    """A clause that names the resources in a stack that do not belong to the cluster."""
    kinds = Counter(resource.kind for resource in stack.others)
    shown = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common(_SHOWN))
    more = len(kinds) - _SHOWN
    others = f" and resources of {count(more, 'other type')}" if more > 0 else ""
    return f"it also has {shown}{others}, which do not belong to the cluster"


def _not_tried(step: TeardownStep) -> StepOutcome:
    return StepOutcome(step=step.name, state="not tried", message="stacks are left, or requests to AWS failed")
