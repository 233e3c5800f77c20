"""Steps that make the deletion of the stacks short and sure: nothing runs any more, and nothing is in the buckets."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainium_core.nodes.groups import NodeGroups
from trainium_core.teardown.account import Buckets, Workload, Workloads
from trainium_core.teardown.scope import Scope
from trainium_core.teardown.step import Progress, count
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_IDLE_LIMIT = 60
"""Polls of a group that ends none of its instances, some ten minutes, before CloudFormation is to end them."""


@dataclass
class StopWorkloads:
    """Stops executions of the state machine, which would start jobs again, jobs and warm pools; waits for their end."""

    account: Workloads
    scope: Scope
    name: str = "training jobs"
    stopped: set[Workload] = field(default_factory=set[Workload], init=False)

    def advance(self) -> Progress:
        engines = self.scope.engines_with_workloads
        if not engines:
            return Progress(state="done", message="no stack that runs any")
        work = self.account.running_workloads(
            engines=engines, cluster=self.scope.cluster, state_machines=self.scope.state_machines
        )
        if not work:
            return Progress(state="done", message="none runs")
        for one in work:
            # A warm pool does not say at once that it is going.
            if not one.stopping and one not in self.stopped:
                self.account.stop(one)
                self.stopped.add(one)
        kinds = Counter(one.kind for one in work)
        message = " and ".join(count(number, kind) for kind, number in sorted(kinds.items()))
        return Progress(state="waiting", message=f"stopping {message}: a job has two minutes to save what it has")


@dataclass
class EmptyGroups:
    """Sets the groups to 0 and waits until EC2 has terminated every instance: a placement group goes no earlier.

    for_good: a group that somebody sets up again meanwhile is kept from having instances.
    """

    account: NodeGroups
    groups: Sequence[str]
    for_good: bool = True
    name: str = "nodes"
    idle: int = field(default=0, init=False)
    seen_at_0: set[str] = field(default_factory=set[str], init=False)

    def advance(self) -> Progress:
        groups = self.account.node_groups(self.groups)
        for group in groups:
            if group.wanted:
                # Whatever set it up again, such as the clock of a Capacity Block, would do so again and again. Not at
                # once for good: whoever interrupts this may want the nodes back.
                self.account.empty_group(group.name, for_good=self.for_good and group.name in self.seen_at_0)
            else:
                self.seen_at_0.add(group.name)
        states = sum((Counter(group.instances) for group in groups), Counter[str]())
        if not states and not any(group.wanted for group in groups):
            return Progress(state="done", message="none is left")
        message = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "being notified"
        ends = any(group.wanted for group in groups) or states["shutting-down"]
        self.idle = 0 if ends else self.idle + 1
        if self.idle == _IDLE_LIMIT:
            why = "protected from scale-in, or in standby?"
            return Progress(state="stuck", message=f"{message}, though the group is to have none: {why}")
        return Progress(state="waiting", message=f"{message}; Trainium nodes may take more than 15 minutes to end")


@dataclass
class EmptyBuckets:
    """Deletes every version, delete marker and unfinished upload of the buckets that may be emptied.

    also_delete: the buckets too, which no stack has any more. One that is refused does not keep the others.
    """

    account: Buckets
    scope: Scope
    also_delete: bool = False
    deleted: int = field(default=0, init=False)
    refused: dict[str, str] = field(default_factory=dict[str, str], init=False)

    @property
    def name(self) -> str:
        return "buckets left behind" if self.also_delete else "content of buckets"

    def advance(self) -> Progress:
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
                    return Progress(state="working", message=message)
        if unanswered is not None:
            raise unanswered
        if self.refused:
            message = "; ".join(f"{bucket}: {reason}" for bucket, reason in self.refused.items())
            self.refused.clear()  # whoever begins this step again wants another attempt
            return Progress(state="stuck", message=message)
        return Progress(state="done", message=f"{count(self.deleted, 'object')} deleted")

    def _advance(self, bucket: str) -> str | None:
        """Do a part of what there is to do about a bucket; None when there is nothing."""
        if not self.scope.may_empty(self.account.bucket_tags(bucket)):
            return None
        number = self.account.delete_some(bucket)
        if number:
            self.deleted += number
            return f"{count(self.deleted, 'object')} deleted; at {bucket}"
        if self.also_delete:
            self.account.delete_bucket(bucket)
            return f"{bucket} is deleted"
        return None
