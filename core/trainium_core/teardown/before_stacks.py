"""Steps that make the deletion of the stacks short and sure: nothing runs any more, and nothing is in the buckets."""

from collections import Counter
from dataclasses import dataclass, field

from trainium_core.account.teardown import Buckets, NodeGroups, RunningWork, Work
from trainium_core.teardown.scope import Scope, may_be_emptied
from trainium_core.teardown.step import Progress, count


@dataclass
class StopWork:
    """Stops executions of the state machine, which would start jobs again, jobs and warm pools; waits for their end."""

    account: RunningWork
    scope: Scope
    name: str = "training jobs"
    told: set[Work] = field(default_factory=set[Work], init=False)

    def advance(self) -> Progress:
        if not self.scope.trains:
            return Progress(state="done", told="no stack that runs any")
        work = self.account.running_work(cluster=self.scope.cluster, state_machines=self.scope.state_machines)
        if not work:
            return Progress(state="done", told="none runs")
        for one in work:
            # A warm pool does not say at once that it is going.
            if not one.stopping and one not in self.told:
                self.account.stop(one)
                self.told.add(one)
        kinds = Counter(one.kind for one in work)
        told = " and ".join(count(number, kind) for kind, number in sorted(kinds.items()))
        return Progress(state="waiting", told=f"stopping {told}: a job has two minutes to save what it has")


@dataclass
class EmptyGroups:
    """Sets the groups to 0 and waits until EC2 has terminated every instance: a placement group goes no earlier."""

    account: NodeGroups
    scope: Scope
    name: str = "nodes"

    def advance(self) -> Progress:
        groups = self.account.node_groups(self.scope.groups)
        # Also when it was done before: something else may have set the group up again meanwhile.
        for group in groups:
            if group.wanted:
                self.account.empty_group(group.name)
        states = sum((Counter(group.instances) for group in groups), Counter[str]())
        if not states and not any(group.wanted for group in groups):
            return Progress(state="done", told="none is left")
        told = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "being told"
        return Progress(state="waiting", told=f"{told}; Trainium nodes may take more than 15 minutes to end")


@dataclass
class EmptyBuckets:
    """Deletes every version, delete marker and unfinished upload of the buckets that may be emptied.

    also_delete: the buckets too, which no stack has any more.
    """

    account: Buckets
    scope: Scope
    also_delete: bool = False
    deleted: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        return "buckets left behind" if self.also_delete else "content of buckets"

    def advance(self) -> Progress:
        for bucket in self.scope.buckets if self.also_delete else self.scope.buckets_in_stacks:
            tags = self.account.bucket_tags(bucket)
            if not may_be_emptied(tags, self.scope.cluster):
                continue
            number = self.account.delete_some(bucket)
            if number:
                self.deleted += number
                return Progress(state="working", told=f"{count(self.deleted, 'object')} deleted; at {bucket}")
            if self.also_delete:
                self.account.delete_bucket(bucket)
                return Progress(state="working", told=f"{bucket} is deleted")
        return Progress(state="done", told=f"{count(self.deleted, 'object')} deleted")
