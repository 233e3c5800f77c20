"""What taking a cluster down asks of an account, and the orders it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from trainium_runtime.roster import Notice


@dataclass(frozen=True, kw_only=True)
class MadeResource:
    """A resource that a stack has, or had. `kind` is its CloudFormation type.

    `kept`: it stays when the stack goes, or has stayed. `gone`: CloudFormation has deleted it.
    """

    kind: str
    resource_id: str
    kept: bool = False
    gone: bool = False


@dataclass(frozen=True, kw_only=True)
class StackDescription:
    """A stack and its resources. `cluster` is the tag trn:cluster of the stack or of what it made, if there is one."""

    name: str
    stack_id: str
    status: str
    cluster: str | None
    protected: bool = False
    resources: tuple[MadeResource, ...] = ()

    def ids(self, kind: str) -> tuple[str, ...]:
        """Of the resources of a kind that go with the stack and are not gone yet."""
        return tuple(made.resource_id for made in self.resources if made.kind == kind and not (made.kept or made.gone))


@dataclass(frozen=True, kw_only=True)
class StackProgress:
    """How far a stack is. `left`: its resources that are not deleted; `failures`: what would not go, and why."""

    status: str
    left: int = 0
    failures: tuple[str, ...] = ()


class Stacks(Protocol):
    def living_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]: ...

    def deleted_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        """The deleted stacks of these names that CloudFormation remembers."""
        ...

    def stack_progress(self, stack_id: str) -> StackProgress: ...

    def stack_that_has(self, resource_id: str) -> str | None:
        """The living stack that a resource is part of."""
        ...

    def delete_stack(self, stack_id: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Work:
    """Something that runs, and is billed. `stopping`: told so already.

    An execution is one of a state machine; a warm pool is the instances that an ended job keeps, and has its name.
    """

    kind: Literal["training job", "execution", "warm pool"]
    work_id: str
    stopping: bool = False


class RunningWork(Protocol):
    def running_work(self, *, cluster: str, state_machines: Sequence[str]) -> Sequence[Work]:
        """What runs of the cluster: executions of the state machines, and jobs with the cluster's name and tag."""
        ...

    def stop(self, work: Work) -> None: ...


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """An Auto Scaling group. `wanted`: instances it is to have. `instances`: how many there are, by EC2's state."""

    name: str
    wanted: int
    instances: Mapping[str, int] = field(default_factory=dict[str, int])


class NodeGroups(Protocol):
    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
        """The groups that exist, and those that do not but still have instances: terminated ones do not count."""
        ...

    def empty_group(self, name: str, *, for_good: bool) -> None:
        """for_good: nobody can set it up again, but by an update of its stack that changes its maximum."""
        ...


class NodeNotices(Protocol):
    def notices(self, stack: str) -> Sequence[Notice]:
        """What the nodes of a stack are told; nothing where there is no such stack, or no roster."""
        ...

    def announce(self, stack: str, notice: Notice) -> bool:
        """Tell the nodes, in place of an earlier notice of this kind; False where there is no roster to tell it in."""
        ...

    def withdraw(self, stack: str, kind: str) -> None: ...


class NoticeAccount(NodeNotices, NodeGroups, Protocol):
    """All that giving notice asks of an account."""


class Buckets(Protocol):
    def bucket_tags(self, name: str) -> Mapping[str, str]:
        """Empty for a bucket that does not exist, too."""
        ...

    def delete_some(self, bucket: str) -> int:
        """Delete versions, delete markers and unfinished uploads, as many as one request takes; 0: it is empty."""
        ...

    def delete_bucket(self, name: str) -> None: ...


LeftoverKind = Literal["log group", "SSM parameter", "snapshot", "network interface"]


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A resource outside every stack that may be ours, with the tags by which to tell."""

    kind: LeftoverKind
    resource_id: str
    tags: Mapping[str, str]


class Leftovers(Protocol):
    def candidates(self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str]) -> Sequence[Leftover]:
        """Log groups by the names of the stacks, all else by the cluster's tag; interfaces only if nothing has them."""
        ...

    def delete_leftover(self, leftover: Leftover) -> None: ...


@dataclass(frozen=True, kw_only=True)
class StoredBytes:
    """How much something holds. `at_least`: there is more, which was not counted."""

    count: int
    at_least: bool = False


class StoredSizes(Protocol):
    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:
        """What a bucket or a file system holds, or is billed for; None when it does not exist."""
        ...


class TeardownAccount(Stacks, RunningWork, NoticeAccount, Buckets, Leftovers, StoredSizes, Protocol):
    """All of it. Looks raise UnavailableError when there is no answer, orders RequestRefusedError."""
