"""The steps of a teardown. Each step reads the state, makes the missing changes, and can be repeated."""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from trainium_core.nodes.aws_control import AwsNodeControl
from trainium_core.plurals import count
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.stacks.description import StackDescription, StackProgress
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.leftovers import Leftover, LeftoverKind, Workload
from trainium_core.teardown.scope import Scope
from trainium_runtime.errors import RequestRefusedError, UnavailableError


@dataclass(frozen=True, kw_only=True)
class StepProgress:
    """The progress of a step.

    Attributes:
        state: `waiting` while AWS works; `working` if the step has done a part and can continue at once; `stuck` if it
            cannot finish; or `done`.
        message: Details for people.
    """

    state: Literal["done", "working", "waiting", "stuck"]
    message: str


class TeardownStep(Protocol):
    """A step of a teardown. It reads its state from AWS, so that an interrupted teardown can be repeated."""

    @property
    def name(self) -> str: ...

    def advance(self) -> StepProgress:
        """Do a part of the step.

        Raises:
            UnavailableError: A request that reads failed or was denied.
            RequestRefusedError: AWS refused a change.
        """
        ...


_IDLE_LIMIT = 60
"""The number of polls, in about ten minutes, after which the step is stuck if no group terminates instances."""


@dataclass
class StopWorkloads:
    """Stops queued jobs, running jobs and warm pools, and waits until they have ended."""

    account: AwsTeardown
    scope: Scope
    name: str = "jobs"
    stopped: set[Workload] = field(default_factory=set[Workload], init=False)

    def advance(self) -> StepProgress:
        engines = self.scope.engines_with_workloads
        if not engines:
            return StepProgress(state="done", message="nothing to stop: jobs end when their nodes are terminated")
        work = self.account.running_workloads(engines=engines, cluster=self.scope.cluster)
        if not work:
            return StepProgress(state="done", message="none is running")
        for workload in work:
            # A warm pool does not report at once that it is stopping.
            if not workload.stopping and workload not in self.stopped:
                self.account.stop(workload)
                self.stopped.add(workload)
        kinds = Counter(workload.kind for workload in work)
        message = " and ".join(count(number, kind) for kind, number in sorted(kinds.items()))
        return StepProgress(state="waiting", message=f"stopping {message}: a job has two minutes to save its state")


@dataclass
class EmptyGroups:
    """Sets the desired and minimum size of the groups to 0 and waits until EC2 has terminated every instance.

    A placement group with instances cannot be deleted.

    Attributes:
        account: The account.
        groups: Names of the groups.
        for_good: Whether to set the maximum size of a group to 0 too, if its desired size is raised again.
        name: Name of the step.
        idle: Number of consecutive polls in which the desired sizes were 0 and no instance was shutting down.
        seen_at_0: Groups whose desired size has been 0.
    """

    account: AwsNodeControl
    groups: Sequence[str]
    for_good: bool = True
    name: str = "nodes"
    idle: int = field(default=0, init=False)
    seen_at_0: set[str] = field(default_factory=set[str], init=False)

    def advance(self) -> StepProgress:
        groups = self.account.node_groups(self.groups)
        for group in groups:
            if group.wanted:
                # The maximum size is set too if something has raised the desired size again, such as the controller in
                # a Capacity Block. It is not set at first: users may need the nodes after an interrupted teardown.
                self.account.empty_group(group.name, for_good=self.for_good and group.name in self.seen_at_0)
            else:
                self.seen_at_0.add(group.name)
        states = sum((Counter(group.instances) for group in groups), Counter[str]())
        if not states and not any(group.wanted for group in groups):
            return StepProgress(state="done", message="none left")
        message = (
            ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
            or "desired size is being set to 0"
        )
        ends = any(group.wanted for group in groups) or states["shutting-down"]
        self.idle = 0 if ends else self.idle + 1
        if self.idle == _IDLE_LIMIT:
            why = "they may be protected from scale-in or in standby"
            return StepProgress(
                state="stuck", message=f"{message}, although the desired size of their groups is 0: {why}"
            )
        return StepProgress(state="waiting", message=f"{message}; Trainium nodes may take over 15 minutes to shut down")


@dataclass
class EmptyBuckets:
    """Deletes every version, delete marker and unfinished upload of the buckets that may be emptied.

    A refusal for one bucket does not affect other buckets.

    Attributes:
        account: The account.
        scope: The stacks of the cluster.
        also_delete: Whether to delete the buckets too, because no stack deletes them.
        deleted: Number of deleted versions, delete markers and uploads.
        refused: Reasons of refusals, by bucket.
    """

    account: AwsTeardown
    scope: Scope
    also_delete: bool = False
    deleted: int = field(default=0, init=False)
    refused: dict[str, str] = field(default_factory=dict[str, str], init=False)

    @property
    def name(self) -> str:
        return "buckets left behind" if self.also_delete else "content of buckets"

    def advance(self) -> StepProgress:
        unanswered: UnavailableError | None = None
        for bucket in self.scope.buckets if self.also_delete else self.scope.buckets_in_stacks:
            try:
                message = None if bucket in self.refused else self._advance(bucket)
            except RequestRefusedError as error:
                self.refused[bucket] = str(error)
            except UnavailableError as error:
                unanswered = error
            else:
                if message:
                    return StepProgress(state="working", message=message)
        if unanswered is not None:
            raise unanswered
        if self.refused:
            message = "; ".join(f"{bucket}: {reason}" for bucket, reason in self.refused.items())
            self.refused.clear()  # A repeated step tries them again.
            return StepProgress(state="stuck", message=message)
        return StepProgress(state="done", message=f"{count(self.deleted, 'object')} deleted")

    def _advance(self, bucket: str) -> str | None:
        """Do a part of the work on a bucket. Returns a message about it; None if nothing is left to do."""
        if not self.scope.may_empty(self.account.bucket_tags(bucket)):
            return None
        number = self.account.delete_some(bucket)
        if number:
            self.deleted += number
            return f"{count(self.deleted, 'object')} deleted; emptying {bucket}"
        if self.also_delete:
            self.account.delete_bucket(bucket)
            return f"{bucket} is deleted"
        return None


_ATTEMPTS = 3
_FAILED, _BUSY, _NOT_BUSY = "DELETE_FAILED", "_IN_PROGRESS", "REVIEW_IN_PROGRESS"


@dataclass
class DeleteStacks:
    """Deletes the stacks in `scope.stacks_to_delete` concurrently, since they are independent.

    Attributes:
        account: The account.
        scope: The stacks of the cluster.
        clearing: Steps that delete the usual obstacles, repeated before another attempt.
        name: Name of the step.
        attempts: Number of attempts by stack ID.
    """

    account: AwsStackControl
    scope: Scope
    clearing: Sequence[TeardownStep]
    name: str = "stacks"
    attempts: Counter[str] = field(default_factory=Counter[str], init=False)

    def advance(self) -> StepProgress:
        steps = [self._advance(stack) for stack in self.scope.stacks_to_delete]
        for state in ("working", "waiting", "stuck"):
            messages = [step.message for step in steps if step.state == state]
            if messages:
                return StepProgress(state=state, message="; ".join(messages))
        return StepProgress(state="done", message=", ".join(step.message for step in steps) or "there are none")

    def _advance(self, stack: StackDescription) -> StepProgress:
        now = self.account.stack_progress(stack.stack_id)
        if now.status == "DELETE_COMPLETE":
            return StepProgress(state="done", message=f"{stack.name} is deleted")
        if now.status == "DELETE_IN_PROGRESS":
            return StepProgress(state="waiting", message=f"{stack.name}: {count(now.left, 'resource')} left")
        if self.attempts[stack.stack_id] == _ATTEMPTS:
            return StepProgress(state="stuck", message=_reasons(stack, now))
        return self._order(stack, now)

    def _order(self, stack: StackDescription, now: StackProgress) -> StepProgress:
        if now.status == _FAILED:
            self._clear()
        try:
            self.account.delete_stack(stack.stack_id)
        except RequestRefusedError as error:
            if not now.status.endswith(_BUSY) or now.status == _NOT_BUSY:
                raise
            return StepProgress(
                state="waiting", message=f"{stack.name} is in {now.status}, and cannot be deleted yet: {error}"
            )
        self.attempts[stack.stack_id] += 1
        if now.status == _FAILED:
            return StepProgress(state="waiting", message=f"{_reasons(stack, now)}; trying again")
        return StepProgress(state="waiting", message=f"{stack.name}: {count(now.left, 'resource')} left")

    def _clear(self) -> None:
        for step in self.clearing:
            # If clearing fails, the stack is deleted anyway: the error of the stack then names the obstacle.
            with suppress(UnavailableError, RequestRefusedError):
                while step.advance().state == "working":
                    pass


def _reasons(stack: StackDescription, now: StackProgress) -> str:
    reasons = "; ".join(now.failures) or "CloudFormation reports no reason"
    return f"{stack.name} could not be deleted: {reasons}"


LEFTOVER_KINDS: Sequence[LeftoverKind] = get_args(LeftoverKind)


@dataclass
class DeleteLeftovers:
    """Deletes the cluster's resources of a kind outside the stacks. A refusal for one does not affect the others."""

    account: AwsTeardown
    scope: Scope
    kind: LeftoverKind
    refused: dict[str, str] = field(default_factory=dict[str, str], init=False)
    deleted: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        return f"{self.kind}s"

    def advance(self) -> StepProgress:
        found = own_leftovers(self.account, self.scope, self.kind)
        left = [leftover for leftover in found if leftover.resource_id not in self.refused]
        for leftover in left:
            try:
                self.account.delete_leftover(leftover)
                self.deleted += 1
            except RequestRefusedError as error:
                self.refused[leftover.resource_id] = str(error)
        if left:
            return StepProgress(state="waiting", message=f"{count(self.deleted, self.kind)} deleted")
        if self.refused:
            message = "; ".join(f"{resource_id}: {reason}" for resource_id, reason in self.refused.items())
            self.refused.clear()  # A repeated step tries them again.
            return StepProgress(state="stuck", message=message)
        return StepProgress(
            state="done", message=f"{count(self.deleted, self.kind)} deleted" if self.deleted else "none left"
        )


@dataclass
class OutlivingNodes:
    """Is stuck while nodes are billed that have the tag of the cluster, and that no step ends."""

    account: AwsTeardown
    scope: Scope
    name: str = "nodes outside the stacks"

    def advance(self) -> StepProgress:
        left = self.account.outliving_nodes(self.scope.cluster)
        return StepProgress(state="stuck" if left else "done", message="; ".join(left) or "there are none")


def own_leftovers(
    account: AwsTeardown, scope: Scope, kind: LeftoverKind, *, excluding: Collection[str] = ()
) -> Sequence[Leftover]:
    """The resources of a kind that belong to the cluster, but not to a stack.

    Args:
        account: The account.
        scope: The stacks of the cluster.
        kind: The kind.
        excluding: IDs of resources that an existing stack contains.
    """
    names = scope.stack_names
    found = account.candidates(kind, cluster=scope.cluster, stack_names=names, excluding=excluding)
    return [each for each in found if scope.owns(each) and account.stack_containing(each.resource_id) is None]
